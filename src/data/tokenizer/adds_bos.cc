#include "data/tokenizer/adds_bos.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace hlat {

namespace {

using nlohmann::json;

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return file ? json::parse(file, nullptr, false) : json();
}

// A template's pieces before the text itself, of the kind of special tokens.
bool template_begins_with_token(const json& processor) {
  if (!processor.is_object()) return false;
  if (processor.value("type", "") == "Sequence") {
    const json parts = processor.value("processors", json::array());
    return std::any_of(parts.begin(), parts.end(), template_begins_with_token);
  }
  if (processor.value("type", "") != "TemplateProcessing") return false;
  const json single = processor.value("single", json::array());
  return single.is_array() && !single.empty() && single.front().is_object() && single.front().contains("SpecialToken");
}

}  // namespace

bool adds_bos(const std::filesystem::path& tokenizer) {
  const json settings = read_json(tokenizer.parent_path() / "tokenizer_config.json");
  if (settings.is_object() && settings.contains("add_bos_token") && settings["add_bos_token"].is_boolean())
    return settings["add_bos_token"].get<bool>();
  if (tokenizer.extension() != ".json") return tokenizer.extension() == ".model";
  const json file = read_json(tokenizer);
  return file.is_object() && template_begins_with_token(file.value("post_processor", json()));
}

}  // namespace hlat
