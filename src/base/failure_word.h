// What kind of numerical failure ended a run, for programs: an exception that carries it, and a word that stands before the reason in the
// flight recorder's end record, "[spike step=12] the loss ..." or "[alarm step=300 until=340] ...", where `hlat launch` reads it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hlat {

enum class FailureKind : uint8_t {
  non_finite,  // a loss or gradient that is not finite
  spike,       // loss.on_spike = stop or rollback
  health,      // replicas that differ, sums that are wrong
  alarm,       // loss.on_alarm = stop or rollback; its step is the one with which the trouble began, `until` the one that found it
  skips,       // more batches were to be skipped than loss.skips allows: no restart helps
};
std::string_view name_of(FailureKind kind);

// A step whose numbers went wrong.
class FailedStep : public NumericalError {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  FailedStep(FailureKind kind_, int64_t step_, const std::string& text, double loss_ = kUnknown, double grad_norm_ = kUnknown)
      : NumericalError(text), kind(kind_), step(step_), loss(loss_), grad_norm(grad_norm_) {}
  FailureKind kind;
  int64_t step;
  int64_t until = 0;       // alarm: the step that found it; 0: not told
  double loss, grad_norm;  // where they are known
};

struct FailureWord {
  FailureKind kind = FailureKind::non_finite;
  int64_t step = 0;
  int64_t until = 0;  // not before `step`; 0: not told, as by versions that told the step alone
  bool operator==(const FailureWord&) const = default;
};

std::string format_failure(const FailureWord& word, std::string_view reason);  // "[spike step=12] reason"
std::optional<FailureWord> parse_failure(std::string_view reason);             // none: it does not begin with such a word

// The message of an exception, behind its word where it is a FailedStep.
std::string reason_of(const std::exception& e);

}  // namespace hlat
