// Unicode's normalization forms, as the reference library has them.
#pragma once

#include <string>
#include <string_view>

namespace hlat::tokenizer {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// `text` itself where nothing changes, else `buffer`. The text is UTF-8.
std::string_view normal_form(NormalForm form, std::string_view text, std::string& buffer);

}  // namespace hlat::tokenizer
