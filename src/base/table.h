// Rows of words in columns, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlat {

// One line for each row, two blanks between columns. alignment: a letter for each column, l or r.
std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view alignment);

}  // namespace hlat
