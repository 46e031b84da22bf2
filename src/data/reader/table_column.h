// The text column of an Arrow or Parquet file, batch after batch of rows. Arrow itself is known only to arrow_column.cc (its
// headers take long to compile); a build without Arrow has no_table_column.cc instead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/reader/input_file.h"

namespace hlat::reader {

struct TableBatch {
  std::vector<std::optional<std::string_view>> texts;  // nothing where the table has none; bytes, not yet known to be UTF-8
  std::shared_ptr<const void> owner;                   // of the texts
  // Where the texts stand in the file as they are: a text t lies at begin + (t.data() - base).
  bool in_place = false;
  const char* base = nullptr;
  uint64_t begin = 0;
  uint64_t read_to = 0;  // of the file, about
  std::string broken;    // not empty: the rows that follow cannot be read
};

class TableColumn {
 public:
  virtual ~TableColumn() = default;
  virtual std::optional<TableBatch> next() = 0;
};

// An Error when the table has no such column of text, and when this build has no Arrow. A file that cannot be read is a column
// that is broken at once.
std::unique_ptr<TableColumn> open_arrow_column(const InputFile& file, const std::string& field);  // IPC file or stream
std::unique_ptr<TableColumn> open_parquet_column(const InputFile& file, const std::string& field);

}  // namespace hlat::reader
