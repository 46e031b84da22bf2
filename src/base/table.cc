#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlat {

std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  std::vector<size_t> width(alignment.size(), 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c)
      line +=
          (c == 0 ? "" : "  ") + (alignment[c] == 'l' ? fmt::format("{:<{}}", row[c], width[c]) : fmt::format("{:>{}}", row[c], width[c]));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace hlat
