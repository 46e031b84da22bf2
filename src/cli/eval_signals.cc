#include "cli/eval_signals.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/exit_code.h"
#include "cli/print.h"

namespace hlat {

EvalSignals::EvalSignals(const Launch& launch)
    : run_(std::make_shared<std::atomic<bool>>(false)), signals_([launch, run = run_](const EndSignals::Signal& signal) {
        const bool waits = signal.first && *run;
        if (launch.rank == 0)
          print_err(fmt::format("\nhlat: {}{}\n", signal_name(signal.number),
                                waits ? ": ends behind the examples under way; a second signal ends it at once" : ""));
        if (!waits) std::_Exit(kEndedBySignal + signal.number);
      }) {}

}  // namespace hlat
