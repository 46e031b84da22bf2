#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlat {
namespace {

// Characters, not bytes: what is no first byte of a UTF-8 character takes no place.
size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  std::vector<size_t> width(alignment.size(), 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], characters(row[c]));
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
