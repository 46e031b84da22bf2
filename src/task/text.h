// What Python's str does to texts, as tasks are defined by it: white space, case and lengths by Unicode characters. Texts are UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hlat {

std::string_view strip(std::string_view text);  // white space at both ends
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);           // the first character in upper case, all others in lower case
std::string without_punctuation(std::string_view text);  // ASCII's
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);  // `from` is not empty

int64_t characters(std::string_view text);
// Pieces between runs of white space. White space at an end has an empty piece behind it, as when Python's re.split counts words.
int64_t pieces_between_spaces(std::string_view text);
// text[begin:end] of Python: characters, negative numbers from the end, beyond the ends no more.
std::string_view slice(std::string_view text, int64_t begin, int64_t end);

}  // namespace hlat
