// The names that a record has, for a message about one that it does not have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlat::reader {

// "a, b, c and 4 more": the first few, the nearest to `wanted` first.
std::string field_list(std::string_view wanted, std::vector<std::string> names);

}  // namespace hlat::reader
