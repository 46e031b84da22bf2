#include "eval/text_stream.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/tokenizer/unicode.h"

namespace hlat {

namespace unicode = tokenizer::unicode;

namespace {

constexpr ptrdiff_t kWindow = 16;                          // tokens
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

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
  shown_ += std::exchange(unsure_, {}).size();
}

std::string TextStream::decoded(int32_t id) {
  if (id == tokenizer_.bos() || id == tokenizer_.eos()) return {};
  window_.push_back(id);
  const std::string text = tokenizer_.decode(window_);
  size_t sure = text.size();
  while (std::string_view(text).substr(0, sure).ends_with(kReplacement)) sure -= kReplacement.size();
  std::string more = sure > shown_ ? text.substr(shown_, sure - shown_) : "";
  shown_ = std::max(shown_, sure);
  unsure_ = text.substr(shown_);
  if (std::ssize(window_) > kWindow) shorten(text);
  return more;
}

void TextStream::shorten(const std::string& text) {
  std::vector<int32_t> last(window_.end() - kWindow / 2, window_.end());
  const std::string end = tokenizer_.decode(last);
  if (end.size() <= unsure_.size() || !text.ends_with(end)) return;
  shown_ = end.size() - unsure_.size();
  window_ = std::move(last);
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
      text += kReplacement;
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
  bytes_ += std::exchange(unsure_, {});
  std::string text = before_stop(whole_characters(true));
  return stopped_ ? text : text + std::exchange(held_, {});
}

}  // namespace hlat
