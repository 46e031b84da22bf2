#include "cli/eval_signals.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/exit_code.h"
#include "cli/print.h"

namespace hlat {

EvalSignals::EvalSignals(const Launch& launch, std::string waits)
    : run_(std::make_shared<std::atomic<bool>>(false)),
      signals_([launch, run = run_, words = std::move(waits)](const EndSignals::Signal& signal) {
        const bool ends_soon = signal.first && *run;
        if (launch.rank == 0) print_err(fmt::format("\nhlat: {}{}\n", signal_name(signal.number), ends_soon ? words : ""));
        if (!ends_soon) std::_Exit(kEndedBySignal + signal.number);
      }) {}

}  // namespace hlat
