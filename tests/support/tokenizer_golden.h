// The fixtures of tools/make_tokenizer_golden.py: tokenizer files, and what the reference libraries make of texts with them.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace hlat::test {

struct GoldenRow {
  std::string name;           // for messages
  std::string file;           // in its folder
  std::string ranks_of;       // the family that a file of ranks counts as; empty: another kind of file
  nlohmann::json patch;       // sections of tokenizer.json to replace; null: none
  std::vector<size_t> texts;  // which of the texts
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::string> decoded;
};

struct Golden {
  std::vector<std::string> texts;
  std::vector<GoldenRow> rows;
};

std::string tokenizer_fixture(const std::string& name);  // its path
Golden load_golden(const std::string& name);

// The row's tokenizer file with its patch, as a path; `folder` holds the files, `scratch` what is patched.
std::string golden_file(const GoldenRow& row, const std::string& folder, const std::string& scratch);

// Loads the row's tokenizer. A small file of ranks is of no known family; its row says what it counts as.
std::unique_ptr<Tokenizer> load_golden_tokenizer(const GoldenRow& row, const std::string& folder, const std::string& scratch);
// A fixture by its name; llama3.model counts as Llama 3.
std::unique_ptr<Tokenizer> load_tokenizer_fixture(const std::string& name);

// Where the published tokenizers are, empty when they are not on this machine.
std::string published_tokenizers();

}  // namespace hlat::test
