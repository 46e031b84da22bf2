// What a SentencePiece model file says: the fields of its protobuf messages that we use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlat::tokenizer {

struct SpmPiece {
  enum Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  std::string text;
  float score = 0;
  int type = normal;
};

// Defaults are those of the format.
struct SpmModel {
  enum ModelType { unigram = 1, bpe = 2 };
  std::vector<SpmPiece> pieces;
  int model_type = unigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  int32_t bos_id = 1;
  int32_t eos_id = 2;
  std::string unk_surface = " \xE2\x81\x87 ";
  bool has_charsmap = false;      // characters are rewritten by a table
  bool has_denormalizer = false;  // and back again
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

SpmModel parse_spm(std::string_view content);  // an Error when the content is no such file

}  // namespace hlat::tokenizer
