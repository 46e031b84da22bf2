// hlat train: starts this rank among its peers, and ends as its run has ended.
#include <exception>
#include <memory>

#include "base/failure_word.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/plant_faults.h"
#include "cli/ranks.h"
#include "cli/train_rank.h"
#include "config/resolve.h"

namespace hlat {
namespace {

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
          session, config, guard.step(), [&] { end = train_rank(args, given, config, session, guard, faults.get()); }, tell);
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
