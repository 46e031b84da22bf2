// Readers of the file formats, by the file's content. Errors say what is wrong, load_tokenizer adds the file's name.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "data/tokenizer/spm_proto.h"
#include "data/tokenizer/tiktoken_families.h"
#include "data/tokenizer/tokenizer.h"

namespace hlat::tokenizer {

std::unique_ptr<Tokenizer> read_hf_json(const nlohmann::json& json, std::string_view content);
std::unique_ptr<Tokenizer> read_tekken(const nlohmann::json& json, std::string_view content);
std::unique_ptr<Tokenizer> read_tiktoken(std::string_view content);
// As of a family that the caller knows; special tokens follow the ranks there are, as they do in the family's own file.
std::unique_ptr<Tokenizer> read_tiktoken_as(std::string_view content, const TiktokenFamily& family);
bool looks_like_tiktoken(std::string_view content);
std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content);

// By the sentencepiece library itself.
std::unique_ptr<Tokenizer> make_library_tokenizer(std::string_view content, const SpmModel& model);

// What a file is that stands next to tokenizers but is none by itself, and what to give instead; empty where it is not known.
std::string name_other_json(const nlohmann::json& json);
std::string name_other_text(std::string_view content);

// The kind of file is told from its content.
std::unique_ptr<Tokenizer> read_tokenizer(std::string_view content);

}  // namespace hlat::tokenizer
