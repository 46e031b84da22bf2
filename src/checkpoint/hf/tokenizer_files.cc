#include "checkpoint/hf/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/hf/new_folder.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

// The first three are whole tokenizers, in the order in which the library prefers them.
constexpr std::array<const char*, 3> kWhole = {"tokenizer.json", "tokenizer.model", "tekken.json"};
constexpr std::array<const char*, 8> kMore = {
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
    "chat_template.jinja",   "chat_template.json",      kGenerationConfig};

void add_if_there(const fs::path& folder, const char* name, std::vector<TokenizerFile>& files) {
  std::error_code error;
  if (fs::is_regular_file(folder / name, error)) files.push_back({.from = folder / name, .name = name});
}

}  // namespace

std::vector<TokenizerFile> tokenizer_files_in(const fs::path& folder) {
  std::vector<TokenizerFile> files;
  for (const char* name : kWhole) add_if_there(folder, name, files);
  for (const char* name : kMore) add_if_there(folder, name, files);
  return files;
}

std::vector<TokenizerFile> tokenizer_files_of(const fs::path& tokenizer) {
  std::vector<TokenizerFile> files;
  std::error_code error;
  if (tokenizer.empty() || !fs::is_regular_file(tokenizer, error)) return files;
  const std::string name = tokenizer.filename().string();
  const bool known = std::find(kWhole.begin(), kWhole.end(), name) != kWhole.end();
  if (known) return tokenizer_files_in(tokenizer.parent_path());
  files.push_back({.from = tokenizer, .name = tokenizer.extension() == ".model" ? "tokenizer.model" : "tokenizer.json"});
  for (const char* other : kMore) add_if_there(tokenizer.parent_path(), other, files);
  return files;
}

fs::path tokenizer_to_load(const std::vector<TokenizerFile>& files) {
  for (const char* name : kWhole)
    for (const TokenizerFile& f : files)
      if (f.name == name) return f.from;
  return {};
}

void copy_files(const std::vector<TokenizerFile>& files, const fs::path& folder) {
  std::vector<char> buffer(1 << 20);
  for (const TokenizerFile& f : files) {
    std::ifstream in(f.from, std::ios::binary);
    if (!in) fail_storage(errno, "cannot open " + f.from.string());
    NewFile out(folder / f.name);
    while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), in.gcount() > 0)
      out.write(buffer.data(), static_cast<size_t>(in.gcount()));
    if (in.bad()) fail<FaultError>("cannot read {}", f.from.string());
    out.finish();
  }
}

}  // namespace hlat
