// Text for the tokenizers of the tests: the first byte chooses one, the second where to cut. Ids are in the vocabulary, an encoder
// that has seen much gives the ids of a fresh one, byte-level ids decode to the text, and parts give the ids of the whole.
#include <array>
#include <fstream>
#include <iterator>

#include "data/tokenizer/unicode.h"
#include "fuzz/fuzz_tokenizer.h"

namespace {

using hlat::fuzz::require;

struct Fixture {
  const char* file;
  bool lossless;  // decoding gives the text back
  std::unique_ptr<hlat::Tokenizer> tokenizer;
  std::unique_ptr<hlat::Encoder> encoder;
};

// The small ranks are of no known family; they count as Llama 3's.
std::unique_ptr<hlat::Tokenizer> load_fixture(const std::string& file) {
  const std::string path = HLAT_SOURCE_DIR "/tests/fixtures/tokenizer/" + file;
  if (file != "llama3.model") return hlat::load_tokenizer(path);
  std::ifstream stream(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  for (const auto& family : hlat::tokenizer::tiktoken_families())
    if (family.name == "Llama 3") return hlat::tokenizer::read_tiktoken_as(content, family);
  std::abort();
}

std::vector<Fixture> load_fixtures() {
  std::vector<Fixture> out;
  const auto add = [&](const char* file, bool lossless) {
    auto tokenizer = load_fixture(file);
    auto encoder = tokenizer->encoder();
    out.push_back({file, lossless, std::move(tokenizer), std::move(encoder)});
  };
  add("gpt2.json", true);
  add("llama3.json", true);
  add("llama3.model", true);
  add("smollm.json", true);
  add("neox.json", false);
  add("qwen2.json", false);
  add("added.json", false);
  add("llama2.json", false);
  add("bpe.model", false);
  add("bpe_unk.model", false);
  add("tekken.json", true);
  add("unigram.json", false);
  add("unigram_bytes.json", false);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::vector<Fixture> fixtures = load_fixtures();
  if (size < 2) return 0;
  Fixture& f = fixtures[data[0] % fixtures.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::vector<int32_t> ids;
  f.encoder->encode(text, ids);
  for (const int32_t id : ids) require(id >= 0 && id < f.tokenizer->vocab_size());
  if (data[1] % 16 == 0) {
    std::vector<int32_t> fresh;
    f.tokenizer->encoder()->encode(text, fresh);
    require(fresh == ids);
  }
  std::string buffer;
  if (f.lossless) require(f.tokenizer->decode(ids) == hlat::tokenizer::unicode::valid(text, buffer));

  const size_t limit = data[1];
  const size_t at = f.encoder->cut(text, limit);
  require(at <= text.size() && (at <= limit || limit == 0));
  if (at == 0 || at == text.size()) return 0;
  std::vector<int32_t> parts;
  f.encoder->encode(text.substr(0, at), parts);
  f.encoder->resume(text.substr(at), parts);
  require(parts == ids);
  return 0;
}
