#include "base/error.h"
#include "data/reader/table_column.h"

namespace hlat::reader {

std::unique_ptr<TableColumn> open_arrow_column(const InputFile& file, const std::string& /*field*/) {
  fail("cannot read {}: this build has no Arrow (tools/setup_arrow.sh installs it; then build again)", file.path());
}

std::unique_ptr<TableColumn> open_parquet_column(const InputFile& file, const std::string& field) { return open_arrow_column(file, field); }

}  // namespace hlat::reader
