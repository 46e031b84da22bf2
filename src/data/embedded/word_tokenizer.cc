#include "data/embedded/word_tokenizer.h"

#include "base/error.h"
#include "base/rng.h"

namespace hlat {
namespace {

constexpr std::string_view kMarks = ",.!?";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_word(char c) { return is_space(c) || c == '\n' || c == '"' || kMarks.find(c) != std::string_view::npos; }

// Words end at blanks, so text can be cut behind any.
class WordEncoder : public Encoder {
 public:
  explicit WordEncoder(const WordTokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void encode(std::string_view text, std::vector<int32_t>& ids) override {
    const std::vector<int32_t> more = tokenizer_.encode(text);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  size_t cut(std::string_view text, size_t limit) const override {
    const size_t blank = text.substr(0, limit).find_last_of(" \t\r\n");
    return blank == std::string_view::npos ? 0 : blank + 1;
  }
  void resume(std::string_view text, std::vector<int32_t>& ids) override { encode(text, ids); }

 private:
  const WordTokenizer& tokenizer_;
};

}  // namespace

std::unique_ptr<Encoder> WordTokenizer::encoder() const { return std::make_unique<WordEncoder>(*this); }

std::optional<int32_t> WordTokenizer::id_of(std::string_view token) const {
  const auto id = ids_.find(std::string(token));
  return id == ids_.end() ? std::nullopt : std::optional<int32_t>(id->second);
}

std::string WordTokenizer::describe() const { return fmt::format("words of a closed vocabulary, {} tokens", vocab_size()); }

uint64_t WordTokenizer::fingerprint() const {
  std::string all;
  for (const std::string& w : words_) all += w + "\n";
  return hash_name(all);
}

WordTokenizer::WordTokenizer(std::vector<std::string> words) : words_(std::move(words)) {
  for (size_t i = 0; i < words_.size(); ++i)
    HLAT_CHECK(ids_.emplace(words_[i], static_cast<int32_t>(i) + 1).second, "'{}' is twice in the vocabulary", words_[i]);
}

std::vector<int32_t> WordTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (is_space(text[i])) {
      i = end;
      continue;
    }
    if (text[i] == '\n') {
      out.push_back(kEos);
      i = end;
      continue;
    }
    std::string word(1, text[i]);
    if (text[i] == '"') {
      word = i == 0 || is_space(text[i - 1]) || text[i - 1] == '\n' ? kOpenQuote : kCloseQuote;
    } else if (!ends_word(text[i])) {
      while (end < text.size() && !ends_word(text[end])) ++end;
      word = text.substr(i, end - i);
    }
    const auto id = ids_.find(word);
    if (id == ids_.end()) fail("'{}' (at character {} of the text) is not in the tokenizer's vocabulary", text.substr(i, end - i), i);
    out.push_back(id->second);
    i = end;
  }
  return out;
}

std::string WordTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string out;
  bool glue = true;  // nothing, a line break or an opening quote stands before
  for (const int32_t token : tokens) {
    if (token == kEos) {
      out += '\n';
      glue = true;
      continue;
    }
    const bool known = token > 0 && token < vocab_size();
    const std::string word = known ? words_[static_cast<size_t>(token) - 1] : fmt::format("<{}>", token);
    const bool mark = word == kCloseQuote || (word.size() == 1 && kMarks.find(word[0]) != std::string_view::npos);
    if (!glue && !mark) out += ' ';
    glue = word == kOpenQuote;
    out += glue || word == kCloseQuote ? "\"" : word;
  }
  return out;
}

}  // namespace hlat
