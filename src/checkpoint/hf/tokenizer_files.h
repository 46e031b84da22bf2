// The files of a tokenizer that travel with a model: an import keeps them in the checkpoint's folder `tokenizer`, an export puts them next
// to the weights. They are copied byte by byte and not looked into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hlat {

inline constexpr const char* kTokenizerFolder = "tokenizer";  // in a checkpoint
inline constexpr const char* kGenerationConfig = "generation_config.json";

struct TokenizerFile {
  std::filesystem::path from;
  std::string name;  // where it goes
};

// What a folder has of them; generation_config.json goes with them. No folder: none.
std::vector<TokenizerFile> tokenizer_files_in(const std::filesystem::path& folder);
// A tokenizer under any name, under the name by which it is found in a model's folder, and the others of its own folder. No such file:
// none.
std::vector<TokenizerFile> tokenizer_files_of(const std::filesystem::path& tokenizer);
// Of such a list: what a tokenizer is loaded from; empty: nothing of the kind.
std::filesystem::path tokenizer_to_load(const std::vector<TokenizerFile>& files);

void copy_files(const std::vector<TokenizerFile>& files, const std::filesystem::path& folder);  // with fsync

}  // namespace hlat
