// tokenizer.json of Hugging Face's `tokenizers`.
#include <algorithm>
#include <array>

#include "base/rng.h"
#include "data/tokenizer/formats.h"
#include "data/tokenizer/hf_decoder.h"
#include "data/tokenizer/hf_model.h"
#include "data/tokenizer/hf_steps.h"
#include "data/tokenizer/pipeline.h"

namespace hlat::tokenizer {
namespace {

struct AddedSection {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  std::vector<std::string> special;  // names
  std::string moved;                 // a warning about ids that the library would not keep
};

// Ids are those of the file: a model has been trained with them, or will be. The library counts on from the last token of the model
// instead where they leave a gap, which is told.
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
    if (!vocab.find(token.text) && id > next && out.moved.empty())
      out.moved =
          fmt::format("ids leave a gap before the added token '{}': {} is kept, where the tokenizers library would count on from {}",
                      token.text, id, next);
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

// Text that nothing has cut into words yet, and whose words merge as the whole of it would.
bool can_cut_at_joints(const PreTokenizerSection& pre, const ModelSection& model, const IdMap& ids) {
  const bool uncut = pre.steps.empty() || (pre.space_marks && pre.steps.back().kind == SplitStep::unmark);
  return uncut && model.kind == ModelSection::bpe && spaces_only_lead(ids) && ids.contains(" ");
}

// How published files call the tokens that begin and end a document, where nothing else in them tells.
constexpr std::array<const char*, 6> kBosNames = {
    "<s>", "<|begin_of_text|>", "<bos>", "<BOS_TOKEN>", "[BOS]", "<\uFF5Cbegin\u2581of\u2581sentence\uFF5C>"};
constexpr std::array<const char*, 7> kEosNames = {
    "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<EOS_TOKEN>", "[EOS]", "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

template <class Names>
std::optional<int32_t> first_known(const Vocab& vocab, const std::vector<std::string>& special, const Names& names) {
  for (const char* name : names)
    if (std::find(special.begin(), special.end(), name) != special.end()) return vocab.find(name);
  return std::nullopt;
}

void read_post_processor(const JsonNode& node, PipelineParts& parts) {
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

std::unique_ptr<Tokenizer> read_hf_json(const nlohmann::json& json, std::string_view content) {
  const JsonNode root(json, "tokenizer");
  root.allow_keys(
      {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"});
  PipelineParts parts;
  for (const char* key : {"truncation", "padding"})
    if (root.has(key))
      parts.warnings.push_back(fmt::format("'{}' of the tokenizer file does not concern training: documents stay whole", key));

  ModelSection model = read_model(JsonNode(root.at("model").json(), "model"));
  parts.normalizer = read_normalizer(root);
  PreTokenizerSection pre = read_pre_tokenizer(root);
  fold_space_marks(parts.normalizer, pre.steps, root);
  const bool marks = parts.normalizer.marks_spaces || pre.space_marks;
  const IdMap ids = reachable(model.vocab, pre.byte_level, marks);
  model.options.bytes = pre.byte_level;
  model.options.space_is_mark = marks;
  const std::array<int32_t, 256> byte_tokens = find_byte_tokens(model.vocab);
  parts.model = model.make(ids, byte_tokens);
  if (marks && !model.options.whole_first && can_cut_at_joints(pre, model, ids)) {
    const bool all_bytes = model.options.byte_fallback && std::find(byte_tokens.begin(), byte_tokens.end(), -1) == byte_tokens.end();
    pre.steps.push_back({.kind = SplitStep::joints, .joint_bytes = std::make_shared<const Joints>(ids, all_bytes)});
  }
  parts.steps = std::move(pre.steps);

  parts.vocab = std::move(model.vocab);
  AddedSection added = read_added(root, parts.normalizer, parts.vocab);
  if (!added.moved.empty()) parts.warnings.push_back(added.moved);
  parts.fallback = fallbacks(parts.vocab, ids, model.options, byte_tokens);
  parts.decoder = read_decoder(root, parts.vocab, added.normalized);
  parts.raw = AddedTokens(std::move(added.raw), false);
  parts.normalized = AddedTokens(std::move(added.normalized), parts.normalizer.marks_spaces);
  parts.bos = first_known(parts.vocab, added.special, kBosNames);
  if (root.has("post_processor")) read_post_processor(root.at("post_processor"), parts);
  if (!parts.eos) parts.eos = first_known(parts.vocab, added.special, kEosNames);
  const std::string_view of = model.kind == ModelSection::unigram ? "Unigram" : "BPE";
  parts.kind = fmt::format(fmt::runtime(pre.byte_level ? "byte-level {}" : marks ? "SentencePiece-style {}" : "{} of characters"), of);
  parts.fingerprint = hash_name(content);
  return make_pipeline_tokenizer(std::move(parts));
}

}  // namespace hlat::tokenizer
