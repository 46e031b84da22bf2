// hlat train: starts this rank among its peers, and ends as its run has ended.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/failure_word.h"
#include "cli/commands.h"
#include "cli/plant_faults.h"
#include "cli/ranks.h"
#include "cli/train_rank.h"
#include "config/resolve.h"
#include "flight/flight_ring.h"

namespace hlat {
namespace {

// What hlat launch does after an alarm, for a run without one: the flags, with the first batches that loss.skips allows. Empty: nothing.
std::string rollback_by_hand(const FailedStep& failed, const LossConfig& loss) {
  if (failed.kind != FailureKind::alarm || loss.on_alarm != "rollback" || loss.skips == 0) return {};
  if (std::getenv(kFlightVariable) != nullptr) return {};
  std::vector<int64_t> steps;
  for (int64_t step = failed.step; step <= failed.until && std::ssize(steps) < loss.skips; ++step) steps.push_back(step);
  return fmt::format("; without hlat launch nothing goes back by itself: the same command with --before {} --unverified --skip {} does",
                     failed.step, fmt::join(steps, ","));
}

FailedStep with_more(const FailedStep& failed, const std::string& more) {
  FailedStep told(failed.kind, failed.step, failed.what() + more, failed.loss, failed.grad_norm);
  told.until = failed.until;
  return told;
}

RunEnd train_here(const TrainArgs& args, const Config& given, const Config& config, Session& session, RunGuard& guard,
                  fault::Injector* faults) {
  try {
    return train_rank(args, given, config, session, guard, faults);
  } catch (const FailedStep& failed) {
    const std::string by_hand = rollback_by_hand(failed, config.loss);
    if (by_hand.empty()) throw;
    throw with_more(failed, by_hand);
  }
}

void run_train(const TrainArgs& args) {
  const Launch launch = this_launch();
  RunGuard guard(launch);
  try {
    guard.start().begin("reading the config");
    const Config given = args.config.load().config;
    const Config config = with_ranks(given, launch.ranks);
    guard.configure(config);
    const std::unique_ptr<fault::Injector> faults = plant_faults(config, launch, args.fresh, guard);
    guard.start().begin("joining the other ranks (MPI_Init)");
    RunEnd end;
    {
      Session session(launch, config.parallel.start_timeout_s);
      guard.meet(session);
      const OnFailure tell = [&](const std::exception& e, int code) { return guard.failed(e, code); };
      run_on_ranks(
          session, config, guard.step(), [&] { end = train_here(args, given, config, session, guard, faults.get()); }, tell);
      guard.part();
    }
    if (end.signal != 0) throw Interrupted(end.signal, signal_name(end.signal), end.saved);
    guard.flight().ended(kOk, "finished");
  } catch (const std::exception& e) {
    guard.flight().ended(exit_code_of(e), reason_of(e));
    throw;
  }
}

}  // namespace

void add_train_command(CLI::App& app) {
  const auto args = std::make_shared<TrainArgs>();
  CLI::App* command = app.add_subcommand("train", "train a model");
  add_config_args(*command, args->config, "hlat train --config configs/nano.yaml train.steps=100 run.dir=runs/try");
  CLI::Option* fresh =
      command->add_flag("--fresh", args->fresh, "start from scratch: what the run folder has is moved to its folder previous_N");
  command->add_option("--skip", args->skip, "steps whose batches are left out: 12,57; checkpoints record them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(within(int64_t{1}, int64_t{1} << 56))
      ->type_name("STEPS");
  CLI::Option* before =
      command->add_option("--before", args->before, "go back to the newest verified checkpoint before this step; later ones are set aside")
          ->check(within(int64_t{1}, int64_t{1} << 56))
          ->excludes(fresh)
          ->type_name("STEP");
  command->add_flag("--unverified", args->unverified, "with --before: also to a checkpoint whose replicas were not compared")
      ->needs(before);
  command->add_flag("--json", args->json, "print the summary as one JSON object");
  command->callback([args] { run_train(*args); });
}

}  // namespace hlat
