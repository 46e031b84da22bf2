// Text to token ids and back. A Tokenizer is a loaded file: immutable, shared by all threads. Ids are a pure function of the
// text. An Encoder is one thread's view of it with its own caches; it must not outlive the tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace hlat {

class Encoder {
 public:
  virtual ~Encoder() = default;

  // Appends the ids of the whole text, as the reference library gives them without adding special tokens.
  // Bytes that are not UTF-8 count as U+FFFD, one for each maximal ill-formed part.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) = 0;

  // The largest prefix of `text`, at most `limit` bytes, after which the text can be cut without changing any id:
  // encode(prefix) followed by resume(rest) equals encode(text). 0 where there is none.
  virtual size_t cut(std::string_view text, size_t limit) const = 0;
  // As encode, for text that continues a document: nothing that belongs to the start of a text is added.
  virtual void resume(std::string_view text, std::vector<int32_t>& ids) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::unique_ptr<Encoder> encoder() const = 0;
  virtual std::string decode(std::span<const int32_t> ids) const = 0;  // an id outside the vocabulary becomes <id>

  virtual int64_t vocab_size() const = 0;                                  // largest id + 1
  virtual std::optional<int32_t> id_of(std::string_view token) const = 0;  // the token as the file spells it
  virtual std::optional<int32_t> eos() const = 0;                          // what ends a document, where the file tells
  virtual std::optional<int32_t> bos() const = 0;
  virtual bool is_fallback(int32_t id) const = 0;                   // unknown, or a single byte that stands for lack of a better token
  virtual std::string describe() const = 0;                         // "byte-level BPE, 50257 tokens"
  virtual uint64_t fingerprint() const = 0;                         // of the file's content: the same ids for the same fingerprint
  virtual std::vector<std::string> warnings() const { return {}; }  // what the file says and training does not follow
};

// tokenizer.json (Hugging Face: BPE, Unigram), tekken.json (Mistral), *.model (SentencePiece, or tiktoken's ranks of a known family).
// A tokenizer_config.json in the same folder names the begin and end tokens that the file leaves open. An Error names what the
// file asks for that is not supported; nothing is ignored silently.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);
std::unique_ptr<Tokenizer> load_tokenizer_of(const DataConfig& data);  // the same of data.tokenizer, which its errors name

}  // namespace hlat
