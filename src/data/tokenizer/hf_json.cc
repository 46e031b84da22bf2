// tokenizer.json of Hugging Face's `tokenizers`, model type BPE.
#include <algorithm>
#include <array>

#include "base/rng.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/formats.h"
#include "data/tokenizer/hf_steps.h"

namespace hlat::tokenizer {
namespace {

struct ModelSection {
  Vocab vocab;
  BpeOptions options;
  struct Merge {
    int32_t a;
    int32_t b;
    int32_t id;
  };
  std::vector<Merge> merges;
};

// "a b", or ["a", "b"].
std::pair<std::string, std::string> read_pair(const nlohmann::json& json, size_t index) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string())
    return {json[0].get<std::string>(), json[1].get<std::string>()};
  if (!json.is_string()) fail("model.merges[{}]: must be a string or a pair of strings", index);
  const auto& text = json.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
    fail("model.merges[{}]: '{}' is not two tokens", index, text);
  return {text.substr(0, space), text.substr(space + 1)};
}

void read_merges(const JsonNode& node, ModelSection& out) {
  const nlohmann::json& merges = node.json();
  if (!merges.is_array()) node.refuse("must be a list");
  const auto id_of = [&](const std::string& token, size_t i) {
    const auto id = out.vocab.find(token);
    if (!id) fail("model.merges[{}]: '{}' is not in the vocabulary", i, token);
    return *id;
  };
  out.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto [a, b] = read_pair(merges[i], i);
    out.merges.push_back({id_of(a, i), id_of(b, i), id_of(a + b, i)});
  }
}

ModelSection read_model(const JsonNode& node) {
  if (node.has("type") && node.text("type") != "BPE") node.refuse(fmt::format("type '{}' is not supported; BPE is", node.text("type")));
  node.allow_keys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
                   "ignore_merges", "vocab", "merges"});
  if (node.has("dropout") && node.at("dropout").json() != 0) node.refuse("dropout is not supported: ids would be random");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (node.has(key) && !node.text(key).empty()) node.refuse(fmt::format("{} '{}' is not supported", key, node.text(key)));
  ModelSection out;
  const JsonNode vocab = node.at("vocab");
  if (!vocab.json().is_object()) vocab.refuse("must be an object");
  for (const auto& [token, id] : vocab.json().items()) out.vocab.add(token, JsonNode(id, "model.vocab['" + token + "']").integer());
  read_merges(node.at("merges"), out);
  out.options.whole_first = node.flag("ignore_merges", false);
  out.options.byte_fallback = node.flag("byte_fallback", false);
  out.options.fuse_unknown = node.flag("fuse_unk", false);
  if (node.has("unk_token")) {
    const auto id = out.vocab.find(node.text("unk_token"));
    if (!id) node.refuse(fmt::format("unk_token '{}' is not in the vocabulary", node.text("unk_token")));
    out.options.unknown = *id;
  }
  return out;
}

struct AddedSection {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  std::vector<std::string> special;  // names
};

// Ids are given anew by the library, in the order of the list; a file where that gives other ids than it says is refused.
AddedSection read_added(const JsonNode& root, const Normalizer& normalizer, Vocab& vocab) {
  AddedSection out;
  if (!root.has("added_tokens")) return out;
  int64_t next = vocab.size();
  root.at("added_tokens").each([&](const JsonNode& node) {
    node.allow_keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token{.text = node.text("content"),
                     .single_word = node.flag("single_word", false),
                     .lstrip = node.flag("lstrip", false),
                     .rstrip = node.flag("rstrip", false)};
    const int64_t id = node.at("id").integer();
    const int64_t given = vocab.find(token.text).value_or(static_cast<int32_t>(std::min<int64_t>(next, kMaxTokenId)));
    if (given != id) node.refuse(fmt::format("'{}' has the id {}, but the tokens before it make that {}", token.text, id, given));
    vocab.add(token.text, id);
    next = std::max(next, id + 1);
    token.id = static_cast<int32_t>(id);
    const bool special = node.flag("special", false);
    if (special) out.special.push_back(token.text);
    if (!node.flag("normalized", !special)) {
      out.raw.push_back(std::move(token));
      return;
    }
    Normalizer::Buffers buffers;
    token.text = std::string(normalizer.apply(token.text, false, buffers));
    out.normalized.push_back(std::move(token));
  });
  return out;
}

// Tokens that text can become, in the bytes of words; their ids.
IdMap reachable(const Vocab& vocab, bool bytes, bool space_marks) {
  IdMap out;
  for (int32_t id = 0; id < vocab.size(); ++id) {
    if (!vocab.has(id)) continue;
    const std::string& token = vocab.token(id);
    if (bytes) {
      if (auto b = bytes_of_printable(token)) out.emplace(std::move(*b), id);
    } else if (!space_marks) {
      out.emplace(token, id);
    } else if (token.find(' ') == std::string::npos) {
      out.emplace(replace_all(token, kSpaceMark, " "), id);
    }
  }
  return out;
}

// Whether words that start with their spaces merge as the whole text would: no token has a space after another character.
bool spaces_only_lead(const IdMap& ids) {
  return std::none_of(ids.begin(), ids.end(), [](const auto& t) {
    const size_t word = t.first.find_first_not_of(' ');
    return word != std::string::npos && t.first.find(' ', word) != std::string::npos;
  });
}

// A last step that makes U+2581 of spaces is kept in mind instead of done, where nothing later looks at the text.
void fold_space_marks(Normalizer& normalizer, std::vector<SplitStep>& steps, const JsonNode& root) {
  std::vector<NormalizerStep>& n = normalizer.steps;
  if (n.empty() || n.back().kind != NormalizerStep::replace || n.back().from != " " || n.back().to != kSpaceMark) return;
  // A cut at spaces finds none any more.
  if (steps.size() == 1 && steps[0].kind == SplitStep::regex) {
    const JsonNode pattern = root.at("pre_tokenizer").has("pattern") ? root.at("pre_tokenizer").at("pattern") : root;
    if (pattern.has("String") && pattern.text("String") == " ") steps.clear();
  }
  if (!steps.empty()) return;
  n.pop_back();
  normalizer.marks_spaces = true;
  for (NormalizerStep& s : n)
    if (s.kind == NormalizerStep::prepend) s.to = replace_all(s.to, kSpaceMark, " ");
}

std::optional<int32_t> first_known(const Vocab& vocab, const std::vector<std::string>& special, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::find(special.begin(), special.end(), name) != special.end()) return vocab.find(name);
  return std::nullopt;
}

void read_post_processor(const JsonNode& node, BpeParts& parts) {
  const std::string type = node.text("type");
  if (type == "Sequence") {
    node.at("processors").each([&](const JsonNode& n) { read_post_processor(n, parts); });
  } else if (type == "TemplateProcessing") {
    bool before = true;
    node.at("single").each([&](const JsonNode& n) {
      if (n.has("Sequence")) before = false;
      if (n.has("SpecialToken")) (before ? parts.bos : parts.eos) = parts.vocab.find(n.at("SpecialToken").text("id"));
    });
  } else if (type != "ByteLevel" && type != "BertProcessing" && type != "RobertaProcessing") {
    node.refuse(fmt::format("post-processor '{}' is not supported", type));
  }
}

std::vector<bool> fallbacks(const Vocab& vocab, const IdMap& ids, const BpeOptions& options, const std::array<int32_t, 256>& byte_tokens) {
  std::vector<bool> out(static_cast<size_t>(vocab.size()), false);
  if (options.unknown >= 0) out[static_cast<size_t>(options.unknown)] = true;
  if (options.bytes) {
    for (const auto& [token, id] : ids)
      if (token.size() == 1 && static_cast<uint8_t>(token[0]) >= 0x80) out[static_cast<size_t>(id)] = true;
  } else if (options.byte_fallback) {
    for (const int32_t id : byte_tokens)
      if (id >= 0) out[static_cast<size_t>(id)] = true;
  }
  return out;
}

}  // namespace

std::unique_ptr<Tokenizer> read_hf_json(std::string_view content) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(content);
  } catch (const nlohmann::json::exception& e) {
    fail("not JSON: {}", e.what());
  }
  const JsonNode root(json, "tokenizer");
  root.allow_keys(
      {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"});
  for (const char* key : {"truncation", "padding"})
    if (root.has(key)) root.refuse(fmt::format("'{}' is not supported: documents stay whole", key));

  BpeParts parts;
  ModelSection model = read_model(JsonNode(root.at("model").json(), "model"));
  parts.normalizer = read_normalizer(root);
  PreTokenizerSection pre = read_pre_tokenizer(root);
  fold_space_marks(parts.normalizer, pre.steps, root);
  const bool marks = parts.normalizer.marks_spaces || pre.space_marks;
  IdMap ids = reachable(model.vocab, pre.byte_level, marks);
  model.options.bytes = pre.byte_level;
  model.options.space_is_mark = marks;
  const std::array<int32_t, 256> byte_tokens = find_byte_tokens(model.vocab);
  PairTable pairs(model.merges.size());
  for (size_t i = 0; i < model.merges.size(); ++i)
    pairs.set(model.merges[i].a, model.merges[i].b, {static_cast<uint32_t>(i), model.merges[i].id});

  parts.vocab = std::move(model.vocab);
  AddedSection added = read_added(root, parts.normalizer, parts.vocab);
  parts.fallback = fallbacks(parts.vocab, ids, model.options, byte_tokens);
  parts.decoder = read_decoder(root, parts.vocab, added.normalized);
  parts.raw = AddedTokens(std::move(added.raw), false);
  parts.normalized = AddedTokens(std::move(added.normalized), parts.normalizer.marks_spaces);
  const bool lead = spaces_only_lead(ids);
  parts.model = std::make_unique<BpeModel>(model.options, ids, std::move(pairs), byte_tokens);
  // Text that nothing has cut into words yet.
  const bool uncut = pre.steps.empty() || (pre.space_marks && pre.steps.back().kind == SplitStep::unmark);
  if (marks && uncut && lead && parts.model->knows_space() && !model.options.whole_first) {
    const bool all_bytes = model.options.byte_fallback && std::find(byte_tokens.begin(), byte_tokens.end(), -1) == byte_tokens.end();
    pre.steps.push_back({.kind = SplitStep::joints, .joint_bytes = std::make_shared<const Joints>(ids, all_bytes)});
  }
  parts.steps = std::move(pre.steps);
  parts.bos = first_known(parts.vocab, added.special, {"<s>", "<|begin_of_text|>", "<bos>"});
  if (root.has("post_processor")) read_post_processor(root.at("post_processor"), parts);
  if (!parts.eos) parts.eos = first_known(parts.vocab, added.special, {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"});
  parts.kind = pre.byte_level ? "byte-level BPE" : marks ? "SentencePiece-style BPE" : "BPE of characters";
  parts.fingerprint = hash_name(content);
  return make_bpe_tokenizer(std::move(parts));
}

}  // namespace hlat::tokenizer
