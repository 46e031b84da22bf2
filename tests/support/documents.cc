#include "support/documents.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <stdexcept>

#include "base/rng.h"

namespace hlat::test {

std::vector<std::string> some_documents(size_t count, uint64_t seed) {
  static const std::vector<std::string> kWords = {"the ",
                                                  "story ",
                                                  "ends",
                                                  "\n",
                                                  "\t\"",
                                                  "\\",
                                                  "/",
                                                  "\r\n",
                                                  "naïve ",
                                                  "日本語",
                                                  "🙂👩‍🚀",
                                                  "e\u0301",
                                                  "\u0001",
                                                  "ж",
                                                  "{\"text\": 1}",
                                                  "\u2028",
                                                  std::string(1, '\0'),
                                                  "\u007f"};
  std::vector<std::string> texts(count);
  for (size_t i = 0; i < count; ++i) {
    RandomStream random({.seed = seed, .stream = i, .purpose = Noise::data, .step = 0});
    const uint64_t words = random.below(i % 10 == 9 ? 20000 : 300);
    for (uint64_t w = 0; w < words; ++w) texts[i] += kWords[random.below(kWords.size())];
  }
  return texts;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string json_lines(const std::vector<std::string>& texts, std::string_view field) {
  std::string out;
  for (const std::string& text : texts) out += fmt::format("{{{}: {}, \"id\": {}}}\n", json_string(field), json_string(text), text.size());
  return out;
}

std::string gzip(std::string_view data) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&z, data.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  if (status != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

std::string zstd(std::string_view data) {
  std::string out(ZSTD_compressBound(data.size()), '\0');
  const size_t n = ZSTD_compress(out.data(), out.size(), data.data(), data.size(), 3);
  if (ZSTD_isError(n)) throw std::runtime_error(ZSTD_getErrorName(n));
  out.resize(n);
  return out;
}

std::vector<std::string> read_all(const DocumentFile& file) {
  std::vector<std::string> texts(file.documents());
  for (size_t i = 0; i < texts.size(); ++i) file.text(i, texts[i]);
  return texts;
}

std::vector<std::string> read_all_in_parts(const DocumentFile& file, uint64_t bytes) {
  std::vector<std::string> texts(file.documents());
  for (size_t i = 0; i < texts.size(); ++i) {
    for (std::string part; file.text_part(i, texts[i].size(), bytes, part), !part.empty(); texts[i] += part) {
      const uint64_t left = file.length(i) - texts[i].size();
      if (part.size() > bytes || part.size() + 3 < std::min(bytes, left)) throw std::runtime_error("a part is too long or too short");
      if ((static_cast<unsigned char>(part[0]) & 0xc0u) == 0x80u) throw std::runtime_error("a part begins inside a character");
    }
  }
  return texts;
}

std::vector<uint64_t> all_hashes(const DocumentFile& file) {
  std::vector<uint64_t> hashes(file.documents());
  for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = file.hash(i);
  return hashes;
}

}  // namespace hlat::test
