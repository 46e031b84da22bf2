#include "base/failure_word.h"

#include <array>
#include <charconv>

namespace hlat {

namespace {

constexpr std::array<std::string_view, 5> kFailureNames = {"non_finite", "spike", "health", "alarm", "skips"};
constexpr std::string_view kBeforeStep = " step=", kBeforeUntil = " until=";

// Takes `before` and the number behind it off the text. False: they are not there.
bool take_number(std::string_view& text, std::string_view before, int64_t& number) {
  if (!text.starts_with(before)) return false;
  const std::string_view digits = text.substr(before.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || number < 0) return false;
  text = digits.substr(static_cast<size_t>(end - digits.data()));
  return true;
}

}  // namespace

std::string_view name_of(FailureKind kind) { return kFailureNames[static_cast<size_t>(kind)]; }

std::string format_failure(const FailureWord& word, std::string_view reason) {
  const std::string until = word.until > 0 ? fmt::format("{}{}", kBeforeUntil, word.until) : "";
  return fmt::format("[{}{}{}{}] {}", name_of(word.kind), kBeforeStep, word.step, until, reason);
}

std::optional<FailureWord> parse_failure(std::string_view reason) {
  if (!reason.starts_with('[')) return {};
  reason.remove_prefix(1);
  for (size_t i = 0; i < kFailureNames.size(); ++i) {
    if (!reason.starts_with(kFailureNames[i])) continue;
    std::string_view rest = reason.substr(kFailureNames[i].size());
    FailureWord word{.kind = static_cast<FailureKind>(i)};
    if (!take_number(rest, kBeforeStep, word.step)) continue;
    if (take_number(rest, kBeforeUntil, word.until) && word.until < word.step) return {};
    if (!rest.starts_with(']')) return {};
    return word;
  }
  return {};
}

std::string reason_of(const std::exception& e) {
  const auto* failed = dynamic_cast<const FailedStep*>(&e);
  return failed == nullptr ? std::string(e.what()) : format_failure({failed->kind, failed->step, failed->until}, e.what());
}

}  // namespace hlat
