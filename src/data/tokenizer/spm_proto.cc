// A reader of protobuf's wire format, enough for the model file of SentencePiece.
#include "data/tokenizer/spm_proto.h"

#include <cstring>

#include "base/error.h"

namespace hlat::tokenizer {
namespace {

struct Field {
  uint32_t number = 0;
  uint32_t wire = 0;
  uint64_t value = 0;      // of varint and fixed fields
  std::string_view bytes;  // of the others

  int32_t as_int() const { return static_cast<int32_t>(value); }
  bool as_bool() const { return value != 0; }
};

class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  bool next(Field& f) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    f.number = static_cast<uint32_t>(tag >> 3);
    f.wire = tag & 7;
    switch (f.wire) {
      case 0: f.value = varint(); break;
      case 1: f.value = fixed(8); break;
      case 2: f.bytes = take(varint()); break;
      case 5: f.value = fixed(4); break;
      default: broken();
    }
    return true;
  }

 private:
  [[noreturn]] static void broken() { fail("neither JSON, nor tiktoken's ranks, nor a SentencePiece model"); }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) broken();
      const auto b = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t{b & 0x7Fu} << shift;
      if (b < 0x80) return value;
    }
    broken();
  }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) broken();
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, take(size).data(), size);
    return value;
  }

  std::string_view rest_;
};

SpmPiece read_piece(std::string_view bytes) {
  SpmPiece piece;
  Message m(bytes);
  for (Field f; m.next(f);) {
    if (f.number == 1) piece.text = f.bytes;
    if (f.number == 2) {
      const auto bits = static_cast<uint32_t>(f.value);
      std::memcpy(&piece.score, &bits, sizeof bits);
    }
    if (f.number == 3) piece.type = f.as_int();
  }
  return piece;
}

void read_trainer(std::string_view bytes, SpmModel& out) {
  Message m(bytes);
  for (Field f; m.next(f);) {
    switch (f.number) {
      case 3: out.model_type = f.as_int(); break;
      case 24: out.whitespace_as_suffix = f.as_bool(); break;
      case 35: out.byte_fallback = f.as_bool(); break;
      case 41: out.bos_id = f.as_int(); break;
      case 42: out.eos_id = f.as_int(); break;
      case 44: out.unk_surface = f.bytes; break;
      default: break;
    }
  }
}

void read_normalizer_spec(std::string_view bytes, SpmModel& out) {
  Message m(bytes);
  for (Field f; m.next(f);) {
    switch (f.number) {
      case 2: out.has_charsmap = !f.bytes.empty(); break;
      case 3: out.add_dummy_prefix = f.as_bool(); break;
      case 4: out.remove_extra_whitespaces = f.as_bool(); break;
      case 5: out.escape_whitespaces = f.as_bool(); break;
      default: break;
    }
  }
}

bool has_table(std::string_view bytes) {
  SpmModel spec;
  read_normalizer_spec(bytes, spec);
  return spec.has_charsmap;
}

}  // namespace

SpmModel parse_spm(std::string_view content) {
  SpmModel out;
  Message m(content);
  for (Field f; m.next(f);) {
    if (f.number == 1 && f.wire == 2) out.pieces.push_back(read_piece(f.bytes));
    if (f.number == 2) read_trainer(f.bytes, out);
    if (f.number == 3) read_normalizer_spec(f.bytes, out);
    if (f.number == 5) out.has_denormalizer = has_table(f.bytes);
  }
  if (out.pieces.empty()) fail("a SentencePiece model without pieces");
  return out;
}

}  // namespace hlat::tokenizer
