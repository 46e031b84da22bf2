#include "eval/encode.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "task/text.h"

namespace hlat {

namespace {

size_t size_without_trailing_space(std::string_view text) {
  const std::string_view stripped = strip(text);
  return stripped.empty() ? 0 : static_cast<size_t>(stripped.data() + stripped.size() - text.data());
}

// The ids from `begin` on, predicted in windows of max_length after one id of context; the last is filled up on its left.
std::vector<ScoreRequest> windows_from(const std::vector<int32_t>& ids, int64_t begin, int64_t max_length) {
  std::vector<ScoreRequest> windows;
  for (const auto size = static_cast<int64_t>(ids.size()); begin < size;) {
    const int64_t end = std::min(size, begin + max_length), first = end - 1 - max_length;
    windows.push_back({.context = {ids.begin() + first, ids.begin() + begin}, .continuation = {ids.begin() + begin, ids.begin() + end}});
    begin = end;
  }
  return windows;
}

}  // namespace

RequestEncoder::RequestEncoder(const Tokenizer& tokenizer, const EncodingRules& rules) : rules_(rules), encoder_(tokenizer) {
  HLAT_CHECK(rules.max_length > 1, "a model of {} tokens", rules.max_length);
  if (rules.bos && !rules.begin) throw UsageError("texts are to begin with BOS, and the tokenizer has none");
}

int32_t RequestEncoder::prefix() const {
  if (!rules_.begin && !rules_.end) throw UsageError("a text without a context needs BOS or EOS before it, and the tokenizer has neither");
  return rules_.begin ? *rules_.begin : *rules_.end;
}

std::vector<int32_t> RequestEncoder::with_bos(std::string_view text) {
  std::vector<int32_t> ids = encoder_.encode(text);
  if (rules_.bos && (ids.empty() || ids.front() != *rules_.begin)) ids.insert(ids.begin(), *rules_.begin);
  return ids;
}

// `whole` has ids on both sides.
EncodedScore RequestEncoder::split(std::vector<int32_t> whole, size_t context) const {
  if (whole.size() <= context) throw UsageError("a continuation has no tokens: the tokenizer takes nothing of its text");
  const auto border = whole.begin() + static_cast<int64_t>(context);
  const auto end = border + std::min<int64_t>(whole.end() - border, rules_.max_length);
  const int64_t cut = std::max<int64_t>(0, end - whole.begin() - rules_.max_length - 1);
  return {.request = {.context = {whole.begin() + cut, border}, .continuation = {border, end}},
          .more = windows_from(whole, end - whole.begin(), rules_.max_length),
          .cut = cut};
}

EncodedScore RequestEncoder::score(std::string_view context, std::string_view continuation) {
  if (continuation.empty()) throw UsageError("a continuation has no text");
  if (context.empty()) {
    std::vector<int32_t> ids = encoder_.encode(continuation);
    if (ids.size() < 2 || ids.front() != prefix()) ids.insert(ids.begin(), prefix());
    return split(std::move(ids), 1);
  }
  const std::string both = std::string(context) + std::string(continuation);
  std::vector<int32_t> own = with_bos(context.substr(0, size_without_trailing_space(context)));
  std::vector<int32_t> whole = with_bos(both);
  if (own.empty()) {
    whole.insert(whole.begin(), prefix());
    return split(std::move(whole), 1);
  }
  // Merges across the border can leave no id to the continuation: it is then encoded by itself.
  if (whole.size() <= own.size()) {
    const std::vector<int32_t>& ids = encoder_.encode(continuation);
    const size_t border = own.size();
    own.insert(own.end(), ids.begin(), ids.end());
    return split(std::move(own), border);
  }
  return split(std::move(whole), own.size());
}

EncodedPrompt RequestEncoder::prompt(const TextRequest& request) {
  HLAT_CHECK(request.kind == AskKind::generate && request.max_tokens > 0, "a prompt with {} new tokens", request.max_tokens);
  std::vector<int32_t> ids = with_bos(request.context);
  if (ids.empty()) ids.push_back(prefix());
  const int64_t max_new = request.max_tokens < rules_.max_length ? request.max_tokens : rules_.max_length / 2;
  const int64_t cut = std::max<int64_t>(0, static_cast<int64_t>(ids.size()) - (rules_.max_length - max_new));
  ids.erase(ids.begin(), ids.begin() + cut);
  return {.request = {.prompt = std::move(ids), .max_new = max_new, .sampling = request.sampling, .end = rules_.end.value_or(-1)},
          .cut = cut};
}

std::vector<ScoreRequest> RequestEncoder::rolling(std::string_view text) {
  std::vector<int32_t> ids = with_bos(text);
  if (ids.empty()) throw UsageError("a text to be scored is empty");
  ids.insert(ids.begin(), prefix());
  EncodedScore first = split(std::move(ids), 1);
  first.more.insert(first.more.begin(), std::move(first.request));
  return first.more;
}

}  // namespace hlat
