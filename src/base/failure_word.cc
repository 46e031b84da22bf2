#include "base/failure_word.h"

#include <array>
#include <charconv>

namespace hlat {

namespace {

constexpr std::array<std::string_view, 5> kFailureNames = {"non_finite", "spike", "health", "alarm", "skips"};
constexpr std::string_view kBeforeStep = " step=";

}  // namespace

std::string_view name_of(FailureKind kind) { return kFailureNames[static_cast<size_t>(kind)]; }

std::string format_failure(const FailureWord& word, std::string_view reason) {
  return fmt::format("[{}{}{}] {}", name_of(word.kind), kBeforeStep, word.step, reason);
}

std::optional<FailureWord> parse_failure(std::string_view reason) {
  if (!reason.starts_with('[')) return {};
  reason.remove_prefix(1);
  for (size_t i = 0; i < kFailureNames.size(); ++i) {
    if (!reason.starts_with(kFailureNames[i])) continue;
    std::string_view rest = reason.substr(kFailureNames[i].size());
    if (!rest.starts_with(kBeforeStep)) continue;
    rest.remove_prefix(kBeforeStep.size());
    FailureWord word{.kind = static_cast<FailureKind>(i)};
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), word.step);
    if (error != std::errc() || end == rest.data() + rest.size() || *end != ']' || word.step < 0) return {};
    return word;
  }
  return {};
}

std::string reason_of(const std::exception& e) {
  const auto* failed = dynamic_cast<const FailedStep*>(&e);
  return failed == nullptr ? std::string(e.what()) : format_failure({failed->kind, failed->step}, e.what());
}

}  // namespace hlat
