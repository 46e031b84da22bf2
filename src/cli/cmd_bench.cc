// hlat bench: how fast a step is on this machine, where its time goes, how fast data is read, what saves cost, and how fast a model
// answers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/json_text.h"
#include "bench/data_bench.h"
#include "bench/eval_bench.h"
#include "bench/flight_bench.h"
#include "bench/monitor_bench.h"
#include "bench/save_bench.h"
#include "bench/step_bench.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/on_ranks.h"
#include "cli/print.h"
#include "cli/scan_shown.h"
#include "runtime/auto_micro_batch.h"
#include "runtime/backends.h"

namespace hlat {
namespace {

struct BenchArgs {
  ConfigArgs config;
  int64_t steps = 5;
  bool json = false;
};

// Body(config, backend, session) on all ranks, with a micro-batch that fits.
template <class Body>
void measure_on_ranks(const ConfigArgs& args, const Body& body) {
  on_ranks(args, [&](const Config& given, const Session& session) {
    const auto backend = make_backend(given.device, session.place());
    body(with_micro_batch(given, *backend, session.world(), session.local_ranks()), *backend, session);
  });
}

void run_bench(const BenchArgs& args, bool per_op) {
  measure_on_ranks(args.config, [&](const Config& config, Backend& backend, const Session& session) {
    const StepBench bench = bench_step(config, backend, session.world(), session.local_ranks(), args.steps, per_op);
    if (session.rank() != 0) return;
    if (args.json)
      print_out(fmt::format("{}\n", json_text(bench_json(config, bench), 2)));
    else
      print_out(bench_text(config, bench));
  });
}

struct SaveArgs {
  ConfigArgs config;
  SaveBenchOptions options;
  std::string dir = ".";
  bool json = false;
};

void run_save(const SaveArgs& args) {
  measure_on_ranks(args.config, [&](const Config& config, Backend& backend, const Session& session) {
    SaveBenchOptions options = args.options;
    options.dir = args.dir;
    const SaveBench bench = bench_save(config, backend, session.world(), session.local_ranks(), options);
    if (session.rank() != 0) return;
    if (args.json)
      print_out(fmt::format("{}\n", json_text(save_bench_json(bench), 2)));
    else
      print_out(save_bench_text(bench));
  });
}

void add_save_bench(CLI::App& bench) {
  const auto args = std::make_shared<SaveArgs>();
  CLI::App* command = bench.add_subcommand("save", "what a save adds to the steps that run meanwhile, and its rate against the disk's");
  add_config_args(*command, args->config, "hlat bench save --config configs/llama-134m.yaml --dir /data");
  command->add_option("--saves", args->options.saves, "measured saves, after one for warming up")->check(within(1, 10000))->type_name("N");
  command->add_option("--steps", args->options.steps, "steps per save; default: as many as a save takes, and one more")
      ->check(within(1, 1000000))
      ->type_name("N");
  command->add_option("--dir", args->dir, "a folder on the disk to measure; what is written there is removed")->type_name("DIR");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] { run_save(*args); });
}

struct DataArgs {
  ConfigArgs config;
  int threads = 0;  // 0: as many as the machine has
  double seconds = 2;
  bool json = false;
};

void run_data(const DataArgs& args) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const Dataset data(args.config.load().config, cores, nullptr, shown_on_stderr());
  const DataBench bench = bench_data(data, args.threads > 0 ? args.threads : cores, args.seconds);
  if (args.json)
    print_out(fmt::format("{}\n", json_text(data_bench_json(bench), 2)));
  else
    print_out(data_bench_text(bench));
}

void add_data_bench(CLI::App& bench) {
  const auto args = std::make_shared<DataArgs>();
  CLI::App* command = bench.add_subcommand("data", "how fast the data of a config is read, tokenized and packed, by threads");
  add_config_args(*command, args->config, "hlat bench data --config train.yaml --threads 4");
  command->add_option("--threads", args->threads, "largest number of threads; default: all cores")->check(within(1, 4096))->type_name("N");
  command->add_option("--seconds", args->seconds, "time for each figure")->check(within(0.01, 3600.0))->type_name("S");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] { run_data(*args); });
}

struct EvalBenchArgs {
  ConfigArgs config;
  EvalBenchOptions options;
  std::vector<std::string> dense;  // ROWSxTOKENS
  bool json = false;
};

std::pair<int64_t, int64_t> rows_and_tokens(const std::string& text) {
  int64_t rows = 0, tokens = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%ldx%ld%n", &rows, &tokens, &read) != 2 || static_cast<size_t>(read) != text.size() || rows < 1 ||
      tokens < 1)
    fail<UsageError>("--dense {}: must be ROWSxTOKENS, such as 16x512", text);
  return {rows, tokens};
}

void run_eval(const EvalBenchArgs& args) {
  EvalBenchOptions options = args.options;
  for (const std::string& text : args.dense) options.dense.push_back(rows_and_tokens(text));
  if (options.dense.empty() && options.requests.empty() && options.generate.empty())
    throw UsageError("nothing to measure: give --dense, --requests or --generate");
  measure_on_ranks(args.config, [&](const Config& config, Backend& backend, const Session& session) {
    const EvalBench bench = bench_eval(config, backend, session.world(), session.local_ranks(), options);
    if (session.rank() != 0) return;
    print_out(args.json ? json_text(eval_bench_json(bench), 2) + "\n" : eval_bench_text(bench));
  });
}

void add_eval_bench(CLI::App& bench) {
  const auto args = std::make_shared<EvalBenchArgs>();
  CLI::App* command = bench.add_subcommand("eval", "how fast a model scores texts and generates them, with initial weights");
  add_config_args(*command, args->config, "hlat bench eval --config configs/llama-134m.yaml --dense 4x512 --generate 1 8");
  command->add_option("--dense", args->dense, "score this many rows of this many random tokens")->type_name("ROWSxTOKENS");
  command->add_option("--requests", args->options.requests, "score the requests of a file, one JSON object of ids per line")
      ->type_name("FILE");
  command->add_option("--generate", args->options.generate, "generate 128 tokens after 128, in this many rows at a time")
      ->check(within(int64_t{1}, int64_t{1} << 20))
      ->type_name("ROWS");
  command->add_option("--times", args->options.times, "measured repetitions after one for warming up")
      ->check(within(int64_t{1}, int64_t{1000000}))
      ->type_name("N");
  command->add_flag("--ops", args->options.per_op, "also the time of every op");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] { run_eval(*args); });
}

void add_flight_bench(CLI::App& bench) {
  const auto args = std::make_shared<BenchArgs>();
  args->steps = 20;
  CLI::App* command = bench.add_subcommand("flight", "what recording each op and collective costs a step; takes the memory of two models");
  add_config_args(*command, args->config, "hlat bench flight --config configs/nano.yaml");
  command->add_option("--steps", args->steps, "measured steps with and without it")->check(within(1, 1000000))->type_name("N");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] {
    measure_on_ranks(args->config, [&](const Config& config, Backend& backend, const Session& session) {
      const FlightBench found = bench_flight(config, backend, session.world(), session.local_ranks(), args->steps);
      if (session.rank() == 0) print_out(args->json ? json_text(flight_bench_json(found), 2) + "\n" : flight_bench_text(found));
    });
  });
}

void add_monitor_bench(CLI::App& bench) {
  const auto args = std::make_shared<BenchArgs>();
  args->steps = 20;
  CLI::App* command = bench.add_subcommand("monitor", "what the measurements inside steps and the probe cost a run (docs/monitors.md)");
  add_config_args(*command, args->config, "hlat bench monitor --config configs/llama-134m.yaml train.global_batch=2");
  command->add_option("--steps", args->steps, "measured steps with and without them")->check(within(1, 1000000))->type_name("N");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] {
    measure_on_ranks(args->config, [&](const Config& config, Backend& backend, const Session& session) {
      if (config.monitor.every < 2)
        fail<UsageError>("monitor.every={}: the bench compares steps that measure themselves with steps that do not, 2 or more",
                         config.monitor.every);
      const MonitorBench found = bench_monitors(config, backend, session.world(), session.local_ranks(), args->steps);
      if (session.rank() == 0) print_out(args->json ? json_text(monitor_bench_json(found), 2) + "\n" : monitor_bench_text(found));
    });
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "measure this machine");
  needs_subcommand(*bench);
  const auto add = [&](const char* name, const char* help, bool per_op) {
    const auto args = std::make_shared<BenchArgs>();
    CLI::App* command = bench->add_subcommand(name, help);
    add_config_args(*command, args->config, fmt::format("hlat bench {} --config configs/llama-134m.yaml train.global_batch=2", name));
    command->add_option("--steps", args->steps, "measured steps after one for warming up")->check(within(1, 1000000))->type_name("N");
    command->add_flag("--json", args->json, "print one JSON object");
    command->callback([args, per_op] { run_bench(*args, per_op); });
  };
  add_data_bench(*bench);
  add("step", "tokens/s, MFU and memory of the training step", false);
  add("ops", "the matmul rate of this machine, and every op of the step with its time and rate", true);
  add_save_bench(*bench);
  add_eval_bench(*bench);
  add_flight_bench(*bench);
  add_monitor_bench(*bench);
  add_bench_machine_command(*bench);
}

}  // namespace hlat
