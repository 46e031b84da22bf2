#include "data/reader/megatron.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/indexed_file.h"

namespace hlat::reader {
namespace {

template <class T>
bool widen(std::string_view bytes, std::vector<int32_t>& out, int64_t& bad) {
  const size_t n = bytes.size() / sizeof(T);
  out.reserve(out.size() + n);
  for (size_t i = 0; i < n; ++i) {
    T id = 0;
    std::memcpy(&id, bytes.data() + i * sizeof(T), sizeof(T));
    bad = static_cast<int64_t>(id);  // NOLINT(bugprone-signed-char-misuse): i8 is a number here
    if (bad < 0 || bad > std::numeric_limits<int32_t>::max()) return false;
    out.push_back(static_cast<int32_t>(id));
  }
  return true;
}

class TokenFile final : public IndexedFile {
 public:
  TokenFile(InputFile file, std::unique_ptr<Index> index) : IndexedFile(std::move(file), std::move(index)) {}

  bool tokenized() const override { return true; }
  void tokens(uint64_t document, std::vector<int32_t>& out) const override {
    watch();
    const IndexEntry e = entry(document);
    read(e, 0, e.length, out);
    if (hash_tokens(out) != e.hash) fail_changed();
  }
  // A part has no hash of its own: the file is looked at each time, and the whole document read once more when it was touched.
  void tokens_part(uint64_t document, uint64_t begin, uint64_t count, std::vector<int32_t>& out) const override {
    const IndexEntry e = entry(document);
    check_touched(e, file().check_unchanged(), [&] {
      read(e, 0, e.length, out);
      return hash_tokens(out);
    });
    begin = std::min<uint64_t>(begin, e.length);
    read(e, begin, std::min<uint64_t>(count, e.length - begin), out);
  }

 protected:
  void fetch(const IndexEntry& /*entry*/, std::string& /*out*/) const override {
    HLAT_CHECK(false, "{} holds tokens, not text", file().path());
  }

 private:
  void read(const IndexEntry& e, uint64_t begin, uint64_t count, std::vector<int32_t>& out) const {
    const auto type = static_cast<TokenType>(index().header().detail);
    check_range(e.offset, e.stored);
    std::string bytes(count * token_bytes(type), '\0');
    file().read_exactly(e.offset + begin * token_bytes(type), bytes.data(), bytes.size());
    out.clear();
    int64_t bad = 0;
    if (!widen_tokens(type, bytes, out, bad)) fail_changed();
  }
};

}  // namespace

size_t token_bytes(TokenType type) {
  switch (type) {
    case TokenType::u8:
    case TokenType::i8: return 1;
    case TokenType::i16:
    case TokenType::u16: return 2;
    case TokenType::i32: return 4;
    case TokenType::i64: return 8;
  }
  return 0;
}

bool widen_tokens(TokenType type, std::string_view bytes, std::vector<int32_t>& out, int64_t& bad) {
  switch (type) {
    case TokenType::u8: return widen<uint8_t>(bytes, out, bad);
    case TokenType::i8: return widen<int8_t>(bytes, out, bad);
    case TokenType::i16: return widen<int16_t>(bytes, out, bad);
    case TokenType::u16: return widen<uint16_t>(bytes, out, bad);
    case TokenType::i32: return widen<int32_t>(bytes, out, bad);
    case TokenType::i64: return widen<int64_t>(bytes, out, bad);
  }
  return false;
}

uint64_t hash_tokens(const std::vector<int32_t>& tokens) {
  return hash_content({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(int32_t)});
}

std::unique_ptr<DocumentFile> make_token_file(InputFile file, std::unique_ptr<Index> index) {
  return std::make_unique<TokenFile>(std::move(file), std::move(index));
}

}  // namespace hlat::reader
