#include "eval/text_stream.h"

#include <algorithm>

#include "base/error.h"
#include "data/tokenizer/unicode.h"

namespace hlat {

namespace unicode = tokenizer::unicode;

namespace {

// The longest end of `text` with which a stop string, not yet complete, may begin.
size_t may_begin_stop(const std::string& text, const std::vector<std::string>& stop) {
  size_t longest = 0;
  for (const std::string& s : stop)
    for (size_t n = std::min(text.size(), s.size() - 1); n > longest; --n)
      if (text.compare(text.size() - n, n, s, 0, n) == 0) longest = n;
  return longest;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop, std::span<const int32_t> before)
    : tokenizer_(tokenizer), stop_(std::move(stop)) {
  for (const std::string& s : stop_) HLAT_CHECK(!s.empty(), "an empty stop string");
  for (const int32_t id : before) decoded(id);
}

std::string TextStream::decoded(int32_t id) {
  if (id == tokenizer_.bos() || id == tokenizer_.eos()) return {};
  window_.push_back(id);
  std::string text = tokenizer_.decode(window_);
  std::string more = text.substr(std::min(shown_, text.size()));
  shown_ = text.size();
  if (const size_t alone = tokenizer_.decode({&id, 1}).size(); alone > 0 && window_.size() > 1) {
    window_ = {id};
    shown_ = alone;
  }
  return more;
}

// Bytes that may yet become a character stay, unless these are `all`.
std::string TextStream::whole_characters(bool all) {
  std::string text;
  const char* at = bytes_.data();
  const char* const end = at + bytes_.size();
  while (at < end) {
    const unicode::Char c = unicode::decode_any(at, end);
    const bool ill = c.code == unicode::kInvalid;
    if (ill && at + c.size == end && !all) break;
    if (ill)
      unicode::append(text, 0xFFFD);
    else
      text.append(at, c.size);
    at += c.size;
  }
  bytes_.erase(0, static_cast<size_t>(at - bytes_.data()));
  return text;
}

// Of stop strings that are complete at the same place the longest counts.
std::string TextStream::before_stop(const std::string& text) {
  held_ += text;
  size_t first_end = std::string::npos, cut = 0;
  for (const std::string& s : stop_) {
    const size_t at = held_.find(s);
    if (at == std::string::npos) continue;
    const size_t end = at + s.size();
    if (end < first_end || (end == first_end && at < cut)) first_end = end, cut = at;
  }
  stopped_ = first_end != std::string::npos;
  const size_t free = stopped_ ? cut : held_.size() - may_begin_stop(held_, stop_);
  std::string certain = held_.substr(0, free);
  held_.erase(0, free);
  return certain;
}

std::string TextStream::add(int32_t id) {
  if (stopped_) return {};
  bytes_ += decoded(id);
  return before_stop(whole_characters(false));
}

std::string TextStream::finish() {
  if (stopped_) return {};
  std::string text = before_stop(whole_characters(true));
  return stopped_ ? text : text + std::exchange(held_, {});
}

}  // namespace hlat
