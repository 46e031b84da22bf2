// Longer explanations of single keys, for those whose values are names of something: docs/config.md and `hlat config --keys KEY` show them.
#pragma once

#include <string_view>

namespace hlat {

// Plain lines that are also Markdown; empty for a key without any.
std::string_view note_of(std::string_view key);

}  // namespace hlat
