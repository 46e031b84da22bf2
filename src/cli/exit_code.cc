#include "cli/exit_code.h"

#include "base/error.h"
#include "base/signals.h"

namespace hlat {

int exit_code_of(const std::exception& e) {
  if (const auto* interrupted = dynamic_cast<const Interrupted*>(&e)) return kEndedBySignal + interrupted->signal;
  if (dynamic_cast<const UsageError*>(&e) != nullptr) return kUsage;
  if (dynamic_cast<const FaultError*>(&e) != nullptr) return kFault;
  if (dynamic_cast<const NumericalError*>(&e) != nullptr) return kNumerical;
  if (dynamic_cast<const CheckFailed*>(&e) != nullptr) return kBug;
  return kFailed;
}

}  // namespace hlat
