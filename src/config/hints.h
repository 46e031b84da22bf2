// What a value that was refused may have meant: another spelling of a number, a word of another program, the nearest of the words there
// are.
#pragma once

#include <string>
#include <string_view>

#include "config/fields.h"

namespace hlat {

// For a text that the field does not take, to follow "must be ...": "; did you mean mixed?", or nothing.
std::string hint(const Field& f, std::string_view text);

}  // namespace hlat
