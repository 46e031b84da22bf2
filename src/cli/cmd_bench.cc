// hlat bench: how fast a step is on this machine, and where its time goes.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/ranks.h"
#include "config/resolve.h"
#include "runtime/backends.h"
#include "runtime/step_bench.h"

namespace hlat {
namespace {

struct Args {
  ConfigArgs config;
  int64_t steps = 5;
  bool json = false;
};

void run(const Args& args, bool per_op) {
  const Launch launch = this_launch();
  const Config config = with_ranks(args.config.load().config, launch.ranks);
  Session session(launch, config.parallel.timeout_s);
  run_on_ranks(session, config, 0, [&] {
    const auto backend = make_backend(config.device, session.place());
    const StepBench bench = bench_step(config, *backend, session.world(), session.local_ranks(), args.steps, per_op);
    if (session.rank() != 0) return;
    if (args.json)
      fmt::print("{}\n", bench_json(config, bench).dump(2));
    else
      fmt::print("{}", bench_text(config, bench));
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "measure this machine");
  bench->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, bool per_op) {
    const auto args = std::make_shared<Args>();
    CLI::App* command = bench->add_subcommand(name, help);
    add_config_args(*command, args->config);
    command->add_option("--steps", args->steps, "measured steps after one for warming up")->check(CLI::Range(1, 1000000));
    command->add_flag("--json", args->json, "print one JSON object");
    command->callback([args, per_op] { run(*args, per_op); });
  };
  add("step", "tokens/s, MFU and memory of the training step", false);
  add("ops", "the matmul rate of this machine, and every op of the step with its time and rate", true);
}

}  // namespace hlat
