// Readers of the file formats, by the file's content. Errors say what is wrong, load_tokenizer adds the file's name.
#pragma once

#include <memory>
#include <string_view>

#include "data/tokenizer/spm_proto.h"
#include "data/tokenizer/tokenizer.h"

namespace hlat::tokenizer {

std::unique_ptr<Tokenizer> read_hf_json(std::string_view content);
std::unique_ptr<Tokenizer> read_tiktoken(std::string_view content);
bool looks_like_tiktoken(std::string_view content);
std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content);

// By the sentencepiece library itself.
std::unique_ptr<Tokenizer> make_library_tokenizer(std::string_view content, const SpmModel& model);

// The kind of file is told from its first bytes.
std::unique_ptr<Tokenizer> read_tokenizer(std::string_view content);

}  // namespace hlat::tokenizer
