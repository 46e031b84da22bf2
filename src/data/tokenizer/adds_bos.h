// Whether the reference library puts the begin-of-text token before a text when it encodes with this tokenizer's files: a model that comes
// with them was trained so.
#pragma once

#include <filesystem>

namespace hlat {

// Of a tokenizer as load_tokenizer takes it. tokenizer_config.json next to it says so with add_bos_token; else the post-processor of
// tokenizer.json; a SentencePiece model alone means yes, as LLaMA's does.
bool adds_bos(const std::filesystem::path& tokenizer);

}  // namespace hlat
