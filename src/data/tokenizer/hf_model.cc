// BPE and Unigram models of tokenizer.json.
#include "data/tokenizer/hf_model.h"

#include "data/tokenizer/unigram_model.h"

namespace hlat::tokenizer {
namespace {

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

ModelSection read_unigram(const JsonNode& node) {
  node.allow_keys({"type", "unk_id", "vocab", "byte_fallback"});
  ModelSection out;
  out.kind = ModelSection::unigram;
  node.at("vocab").each([&](const JsonNode& n) {
    const nlohmann::json& row = n.json();
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_number()) n.refuse("must be a token and its score");
    out.vocab.add(row[0].get<std::string>(), static_cast<int64_t>(out.scores.size()));
    out.scores.push_back(row[1].get<double>());
  });
  out.options.byte_fallback = node.flag("byte_fallback", false);
  if (node.has("unk_id")) {
    const int64_t id = node.at("unk_id").integer();
    if (!out.vocab.has(id)) node.refuse(fmt::format("unk_id {} is not in the vocabulary", id));
    out.options.unknown = static_cast<int32_t>(id);
  }
  return out;
}

ModelSection read_bpe(const JsonNode& node) {
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

}  // namespace

ModelSection read_model(const JsonNode& node) {
  // Files of old versions do not say which: then merges tell.
  const std::string type = node.has("type") ? node.text("type") : node.has("merges") ? "BPE" : "Unigram";
  if (type == "BPE") return read_bpe(node);
  if (type == "Unigram") return read_unigram(node);
  node.refuse(fmt::format("type '{}' is not supported; BPE and Unigram are", type));
}

std::unique_ptr<WordModel> ModelSection::make(const IdMap& ids, const std::array<int32_t, 256>& byte_tokens) const {
  if (kind == unigram) {
    const UnigramOptions of = {.unknown = options.unknown, .byte_fallback = options.byte_fallback, .space_is_mark = options.space_is_mark};
    return std::make_unique<UnigramModel>(of, ids, scores, byte_tokens);
  }
  PairTable pairs(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) pairs.set(merges[i].a, merges[i].b, {static_cast<uint32_t>(i), merges[i].id});
  return std::make_unique<BpeModel>(options, ids, std::move(pairs), byte_tokens);
}

}  // namespace hlat::tokenizer
