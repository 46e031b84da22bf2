// Values as text: how one field is read, checked, described and written. Numbers are read strictly: no blanks, no
// trailing characters, no overflow, no infinity or NaN, and no dependence on the locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace hlat {

// Stores `text` in the field. False, and the field as it was, when the text has the wrong type or is out of limits.
bool parse_value(const Field& f, std::string_view text);
bool accepts(const Field& f, std::string_view text);  // whether parse_value would store it

bool within_limits(const Field& f);
bool is_list(const Field& f);
bool is_map(const Field& f);

// What parse_value accepts, to follow "must be": "an integer from 1 to 8", "true or false", "one of a, b".
std::string expectation(const Field& f);

// The words a field may be written with, where there is a fixed list.
std::vector<std::string_view> words_of(const Field& f);

// The value in the form parse_value reads; reading it back gives the identical value.
std::string text_of(const Field& f);

}  // namespace hlat
