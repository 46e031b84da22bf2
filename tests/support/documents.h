// Documents for tests of readers: texts of many lengths and scripts, and files that hold them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/reader/document_file.h"

namespace hlat::test {

// Texts with empty ones, escapes, control characters, scripts of one to four bytes, and every tenth a long one.
std::vector<std::string> some_documents(size_t count, uint64_t seed = 1);

std::string json_string(std::string_view text);  // with its quotes
std::string json_lines(const std::vector<std::string>& texts, std::string_view field = "text");

std::string gzip(std::string_view data);  // one member
std::string zstd(std::string_view data);  // one frame

std::vector<std::string> read_all(const DocumentFile& file);
// The same through text_part, `bytes` at a time; throws when a part ends inside a character or is far too short.
std::vector<std::string> read_all_in_parts(const DocumentFile& file, uint64_t bytes);
std::vector<uint64_t> all_hashes(const DocumentFile& file);

}  // namespace hlat::test
