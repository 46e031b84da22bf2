// Base64, as rank files spell the bytes of tokens.
#pragma once

#include <string>
#include <string_view>

namespace hlat::tokenizer {

// Replaces `out`; false for what is not base64, and for nothing at all.
bool from_base64(std::string_view text, std::string& out);

}  // namespace hlat::tokenizer
