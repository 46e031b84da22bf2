#include "cli/eval_signals.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>

#include "base/exit_code.h"
#include "cli/print.h"

namespace hlat {

EvalSignals::EvalSignals(const Launch& launch, std::string waits)
    : state_(std::make_shared<State>()), signals_([launch, state = state_, words = std::move(waits)](const EndSignals::Signal& signal) {
        if (signal.number == SIGINT && state->converses && state->run && !state->text_ends.exchange(true)) return;
        const bool ends_soon = signal.first && state->run;
        if (launch.rank == 0) print_err(fmt::format("\nhlat: {}{}\n", signal_name(signal.number), ends_soon ? words : ""));
        if (!ends_soon) std::_Exit(kEndedBySignal + signal.number);
      }) {}

int EvalSignals::asked() const {
  const int signal = signals_.asked();
  return signal == SIGINT && state_->converses ? 0 : signal;  // it ended a text, and nothing else
}

}  // namespace hlat
