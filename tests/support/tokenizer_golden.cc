// Reads golden.jsonl: the texts, then a line per tokenizer.
#include "support/tokenizer_golden.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "data/tokenizer/formats.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {

std::string tokenizer_fixture(const std::string& name) { return source_path("tests/fixtures/tokenizer/") + name; }

Golden load_golden(const std::string& name) {
  std::ifstream file(tokenizer_fixture(name));
  if (!file) throw std::runtime_error("cannot read " + tokenizer_fixture(name));
  Golden out;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (json.contains("texts")) {
      out.texts = json["texts"].get<std::vector<std::string>>();
      continue;
    }
    GoldenRow row;
    row.file = json["file"];
    row.patch = json.value("patch", nlohmann::json());
    row.ranks_of = json.value("ranks_of", "");
    row.name = json.value("family", "") + " " + row.file + (row.patch.is_null() ? "" : " with " + row.patch.dump());
    const size_t step = json.value("step", size_t{1});
    row.ids = json["ids"].get<std::vector<std::vector<int32_t>>>();
    for (size_t i = 0; i < row.ids.size(); ++i) {
      row.texts.push_back(i * step);
      const std::string key = std::to_string(i);
      row.decoded.push_back(json["decoded"].contains(key) ? json["decoded"][key].get<std::string>() : out.texts.at(i * step));
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string golden_file(const GoldenRow& row, const std::string& folder, const std::string& scratch) {
  const std::string path = folder + "/" + row.file;
  if (row.patch.is_null()) return path;
  nlohmann::json json = nlohmann::json::parse(slurp(path));
  for (const auto& [key, value] : row.patch.items()) {
    if (key == "model")
      json["model"].update(value);
    else
      json[key] = value;
  }
  const std::string out = scratch + "/patched.json";
  std::ofstream(out) << json.dump();
  return out;
}

namespace {

std::unique_ptr<Tokenizer> load_ranks(const std::string& path, const std::string& family) {
  for (const tokenizer::TiktokenFamily& f : tokenizer::tiktoken_families())
    if (f.name == family) return tokenizer::read_tiktoken_as(slurp(path), f);
  throw std::runtime_error("no family " + family);
}

}  // namespace

std::unique_ptr<Tokenizer> load_golden_tokenizer(const GoldenRow& row, const std::string& folder, const std::string& scratch) {
  const std::string path = golden_file(row, folder, scratch);
  if (!row.ranks_of.empty()) return load_ranks(path, row.ranks_of);
  // The rows of golden.jsonl know one kind of ranks.
  return folder == tokenizer_fixture("") && row.file == "llama3.model" ? load_ranks(path, "Llama 3") : load_tokenizer(path);
}

std::unique_ptr<Tokenizer> load_tokenizer_fixture(const std::string& name) {
  return load_golden_tokenizer({.name = name, .file = name, .ranks_of = "", .patch = {}, .texts = {}, .ids = {}, .decoded = {}},
                               tokenizer_fixture(""), "");
}

std::string published_tokenizers() {
  const std::string path = source_path("../shared/data/tokenizers");
  return std::filesystem::is_directory(path) ? path : "";
}

}  // namespace hlat::test
