// Arrow and Parquet files made with Arrow's own writers, for tests of the readers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlat::test {

bool have_arrow();  // whether this build has it; without it the functions below throw

struct TableKind {
  std::string format;         // "file", "stream" or "parquet"
  std::string codec;          // "", "lz4", "zstd"; for parquet also "snappy", "gzip"
  std::string type = "utf8";  // or "large_utf8", "binary", "utf8_view", "dictionary"
  int64_t rows = 100;         // of a batch or row group
};

// A table with the columns "id" (int64), "text" and "other" (int32). Null where there is no text.
std::string make_table(const std::vector<std::optional<std::string>>& texts, const TableKind& kind);
std::string make_table(const std::vector<std::string>& texts, const TableKind& kind);

}  // namespace hlat::test
