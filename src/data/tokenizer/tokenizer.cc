// Tokenizer files.
#include "data/tokenizer/tokenizer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "data/tokenizer/formats.h"

namespace hlat::tokenizer {

std::unique_ptr<Tokenizer> read_tokenizer(std::string_view content) {
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) fail("the file is empty");
  if (content[first] == '{') return read_hf_json(content);
  if (looks_like_tiktoken(content)) return read_tiktoken(content);
  return read_sentencepiece(content);
}

}  // namespace hlat::tokenizer

namespace hlat {

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw UsageError(fmt::format("{}: a folder; name the tokenizer file in it", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) throw UsageError(fmt::format("{}: cannot be read", path));
  try {
    return tokenizer::read_tokenizer(content);
  } catch (const Error& e) {
    throw UsageError(fmt::format("{}: {}", path, e.what()));
  }
}

}  // namespace hlat
