// Comma-separated values as RFC 4180 has them: fields in double quotes may hold separators, quotes (doubled) and line breaks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

struct CsvRow {
  int64_t line = 1;  // where it starts, from 1
  std::vector<std::string> fields = {};
  std::string problem = {};  // what is wrong with it; empty: nothing
};

std::vector<CsvRow> read_csv(std::string_view text, char separator);  // lines without a character are passed over

}  // namespace hlat
