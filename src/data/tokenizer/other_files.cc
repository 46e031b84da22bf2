// Files that people name in place of the tokenizer: parts of one, or settings.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/tokenizer/formats.h"

namespace hlat::tokenizer {
namespace {

constexpr const char* kGiveJson = "give the tokenizer.json of the same model (or its SentencePiece .model)";

bool only_integers(const nlohmann::json& json) {
  return !json.empty() && std::all_of(json.begin(), json.end(), [](const nlohmann::json& v) { return v.is_number_integer(); });
}

}  // namespace

std::string name_other_json(const nlohmann::json& json) {
  if (!json.is_object()) return "";
  const auto has = [&](const char* key) { return json.contains(key); };
  std::string what;
  if (only_integers(json))
    what = "a vocab.json (or added_tokens.json): tokens and ids, without the merges and the rules that cut text";
  else if (has("tokenizer_class") || has("added_tokens_decoder") || has("model_max_length"))
    what = "a tokenizer_config.json: settings of a tokenizer, not its tokens";
  else if (has("architectures") || has("model_type") || has("hidden_size"))
    what = "a config.json: the shape of a model, not its tokenizer";
  else if (has("bos_token") || has("eos_token") || has("unk_token") || has("pad_token") || has("additional_special_tokens"))
    what = "a special_tokens_map.json: names of special tokens, not the tokenizer";
  else
    return "";
  return what + "; " + kGiveJson;
}

std::string name_other_text(std::string_view content) {
  if (content.starts_with("#version:"))
    return std::string("a merges.txt: merges without the vocabulary and the rules that cut text; ") + kGiveJson;
  if (content.starts_with("[PAD]") || content.starts_with("[UNK]"))
    return "a vocab.txt of WordPiece, which is not supported: it is not made for generating text; give the tokenizer of a language model";
  return "";
}

}  // namespace hlat::tokenizer
