#include "config/resolve.h"

#include "base/error.h"
#include "config/run_length.h"
#include "config/validate.h"
#include "config/value.h"

namespace hlat {
namespace {

std::string there_are(int64_t ranks, RanksAre are) {
  if (are == RanksAre::planned) return fmt::format("the plan is for {}", ranks);
  return fmt::format("{} {} started", ranks, ranks == 1 ? "was" : "were");
}

// How to make the layout fit the ranks there are, or the other way round.
std::string advice(const ParallelConfig& p, int64_t ranks, RanksAre are) {
  const int64_t replica = p.tp * p.pp;
  if (ranks % replica == 0) return "set parallel.dp=auto to use as many replicas as fit";
  if (ranks == 1) return "for one process set parallel.tp=1 parallel.pp=1 parallel.dp=auto";
  const std::string_view number = p.dp == 0 ? "a multiple of " : "";
  return fmt::format("{} {}{} ranks, or set parallel.dp=auto and a parallel.tp x parallel.pp that divides {}",
                     are == RanksAre::planned ? "plan for" : "start", number, p.dp == 0 ? replica : p.ranks(), ranks);
}

void check_ranks(const ParallelConfig& p, int64_t ranks, RanksAre are) {
  const int64_t replica = p.tp * p.pp;
  if (p.dp > 0 && p.ranks() != ranks)
    throw UsageError(fmt::format("parallel.tp ({}) x parallel.pp ({}) x parallel.dp ({}) is {} ranks, but {}; {}", p.tp, p.pp, p.dp,
                                 p.ranks(), there_are(ranks, are), advice(p, ranks, are)));
  if (ranks % replica != 0)
    throw UsageError(fmt::format("parallel.tp ({}) x parallel.pp ({}) is {} ranks for each replica, but {}; {}", p.tp, p.pp, replica,
                                 there_are(ranks, are), advice(p, ranks, are)));
}

// Checks the config again after `key` was found, and says so where it is at fault.
void check_resolved(Config& config, std::string_view key, const std::string& found) {
  std::string text;
  for (const Violation& v : validate(config)) {
    for (const Field& f : all_fields(config)) {
      if (f.key() != v.keys.front()) continue;
      const std::string note = f.key() == key ? found : "";
      text += fmt::format("{}{} = {}{}: {}", text.empty() ? "" : "\n", f.key(), text_of(f), note, v.message);
    }
  }
  if (!text.empty()) throw UsageError(text);
}

}  // namespace

Config with_ranks(Config config, int64_t ranks, RanksAre are) {
  HLAT_CHECK(ranks >= 1, "{} ranks", ranks);
  check_ranks(config.parallel, ranks, are);
  const bool found = config.parallel.dp == 0;
  if (found) config.parallel.dp = ranks / (config.parallel.tp * config.parallel.pp);
  check_resolved(config, "parallel.dp", found ? fmt::format(" (auto, of {} ranks)", ranks) : "");
  return config;
}

void set_steps_from_epochs(Config& config, uint64_t train_tokens) {
  TrainConfig& train = config.train;
  if (length_key(train) != "train.epochs") return;
  train.steps = steps_with(train, train.epochs * static_cast<double>(train_tokens));
  check_resolved(config, "train.steps", fmt::format(" ({} epochs of {} tokens)", train.epochs, train_tokens));
}

}  // namespace hlat
