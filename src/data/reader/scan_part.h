// What the scan of one batch of a data file found. Parts are made by many threads and joined in order by the index writer,
// which knows how many lines and how much text went before: a part counts both from its own begin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/reader/document_file.h"
#include "data/reader/index.h"

namespace hlat::reader {

constexpr size_t kExamples = 8;  // bad documents that are kept with line and reason

struct ScanPart {
  std::vector<IndexEntry> entries;
  std::vector<BadDocument> examples;  // lines from 1
  std::optional<BadDocument> broken;
  uint64_t bad = 0;
  uint64_t empty = 0;
  uint64_t lines = 0;
  uint64_t bytes = 0;
  // With Layout::blocks only. Entries lie in the part's text, blocks in its compressed bytes.
  std::string block_data;
  std::vector<IndexBlock> blocks;

  void add(uint64_t offset, uint64_t stored, std::string_view text);  // a document of text
  void add_bad(uint64_t line, std::string reason);
  void add_break(uint64_t line, std::string reason);  // what follows in the file cannot be read
};

}  // namespace hlat::reader
