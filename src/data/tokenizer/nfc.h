// Unicode's normal form C, as the `tokenizers` library makes it: with the characters that its tables know.
#pragma once

#include <string>
#include <string_view>

namespace hlat::tokenizer {

// `text` (UTF-8) where it is in normal form already, else `buffer` with the normal form.
std::string_view nfc(std::string_view text, std::string& buffer);

}  // namespace hlat::tokenizer
