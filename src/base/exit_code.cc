#include "base/exit_code.h"

#include <csignal>

#include "base/error.h"
#include "base/signals.h"

namespace hlat {

// Schedulers preempt with SIGTERM or SIGUSR1; a person's Ctrl-C or a closed terminal is no wish to be started again.
int exit_code_of_signal(int signal, bool saved) {
  return saved && (signal == SIGTERM || signal == SIGUSR1) ? kPreemptedSaved : kEndedBySignal + signal;
}

int exit_code_of(const std::exception& e) {
  if (const auto* interrupted = dynamic_cast<const Interrupted*>(&e)) return exit_code_of_signal(interrupted->signal, interrupted->saved);
  if (dynamic_cast<const UsageError*>(&e) != nullptr) return kUsage;
  if (dynamic_cast<const FaultError*>(&e) != nullptr) return kFault;
  if (dynamic_cast<const NumericalError*>(&e) != nullptr) return kNumerical;
  if (dynamic_cast<const CheckFailed*>(&e) != nullptr) return kBug;
  return kFailed;
}

}  // namespace hlat
