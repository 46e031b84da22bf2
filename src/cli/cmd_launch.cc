// hlat launch: starts the ranks of a run on one host or many, watches them, and starts them again when something fails.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/signals.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/job_args.h"
#include "cli/print.h"
#include "cli/version.h"
#include "record/goodput.h"
#include "record/progress.h"
#include "runtime/backends.h"
#include "supervise/child.h"
#include "supervise/hosts.h"
#include "supervise/launcher.h"
#include "supervise/output_writer.h"

namespace hlat {

namespace {

constexpr size_t kMostOutput = size_t{4} << 20;  // bytes that wait to be written

struct LaunchArgs {
  ConfigArgs config;
  JobArgs job;
  bool fresh = false;
};

std::vector<std::string> words_of(const LaunchArgs& args, const char* command) {
  std::vector<std::string> words{own_program(), command};
  if (!args.config.path.empty()) words.insert(words.end(), {"--config", args.config.path});
  words.insert(words.end(), args.config.overrides.begin(), args.config.overrides.end());
  return words;
}

void run_launch(const LaunchArgs& args) {
  if (!args.job.print.empty()) return print_out(job_text(args.job, args.config));
  const Environment env = [](const char* name) { return std::getenv(name); };
  LaunchSetup setup;
  setup.config = args.config.load().config;
  const DeviceConfig& device = setup.config.device;
  const int gpus = device.backend == "cpu" ? 0 : static_cast<int>(usable_gpus());
  setup.hosts = find_hosts(setup.config.launch, env, slots_of_this_host(setup.config, gpus));
  setup.in_slurm_job = env("SLURM_JOB_ID") != nullptr && setup.config.launch.starter != "mpirun";
  setup.train = words_of(args, "train");
  setup.check = words_of(args, "check");
  for (const char* word : {"--short", "--json"}) setup.check.emplace_back(word);
  setup.check_model = words_of(args, "check");
  for (const char* word : {"--model", "--json"}) setup.check_model.emplace_back(word);
  setup.fresh = args.fresh;
  setup.version = version();
  setup.columns = live_columns(STDERR_FILENO);
  OutputWriter errors(print_err, kMostOutput);  // a terminal that nobody reads must not hold up the launcher
  setup.show = [&](const std::string& text) { errors.put(text); };
  setup.say = [&](const std::string& text) { errors.put(fmt::format("hlat launch: {}\n", text)); };
  const LaunchEnd end = launch(setup);
  const RunAccount account_of = account(read_run_record(setup.config.run.dir, false));
  setup.say(fmt::format("{}{}", goodput_words(account_of.goodput), end.words.empty() ? "" : "; " + end.words));
  if (const std::string lost = lost_words(account_of.goodput); !lost.empty()) setup.say(lost);
  if (end.exit_code != 0) throw CLI::RuntimeError(end.exit_code);
}

}  // namespace

void add_launch_command(CLI::App& app) {
  const auto args = std::make_shared<LaunchArgs>();
  CLI::App* command = app.add_subcommand("launch", "start the ranks of a run, watch them, and restart them after faults");
  add_config_args(*command, args->config, "hlat launch --config configs/nano.yaml launch.ranks=4 parallel.tp=2");
  command->add_flag("--fresh", args->fresh, "start from scratch: what the run folder has is moved to its folder previous_N");
  add_job_args(*command, args->job);
  command->callback([args] { run_launch(*args); });
}

}  // namespace hlat
