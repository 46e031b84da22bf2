// hlat data inspect: rows as the model would see them, statistics of the sources, and how fast they are read.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/config_warnings.h"
#include "cli/print.h"
#include "cli/scan_shown.h"
#include "config/run_length.h"
#include "data/inspect.h"

namespace hlat {
namespace {

struct DataInspectArgs {
  ConfigArgs config;
  int64_t step = 1;
  int64_t rows = 2;
  uint64_t tokens = 0;  // 0: those of the run, up to a million
  bool json = false;
};

constexpr uint64_t kMostTokens = 1'000'000;  // unless more are asked for

uint64_t tokens_to_walk(const DataInspectArgs& args, const TrainConfig& train) {
  if (args.tokens > 0) return args.tokens;
  if (!steps_known(train)) return kMostTokens;
  return std::min(kMostTokens, static_cast<uint64_t>(train.steps) * static_cast<uint64_t>(tokens_per_step(train)));
}

// "statistics of the first 122 of the run's 600 steps".
std::string walked_text(const DataReport& report, const TrainConfig& train) {
  if (!steps_known(train)) return fmt::format("statistics of the first {} steps", report.steps);
  if (report.steps == train.steps) return fmt::format("statistics of all {} steps of the run", report.steps);
  if (report.steps < train.steps) return fmt::format("statistics of the first {} of the run's {} steps", report.steps, train.steps);
  return fmt::format("statistics of the first {} steps; the run has {}", report.steps, train.steps);
}

void run_data_inspect(const DataInspectArgs& args) {
  const Config config = args.config.load().config;
  const Dataset data(config, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), nullptr, shown_on_stderr());
  const std::vector<ShownRow> rows = show_rows(data, args.step, args.rows);
  const DataReport report = inspect_data(data, tokens_to_walk(args, config.train));
  std::vector<std::string> warnings = config_warnings(config);
  for (std::string& text : data.warnings()) warnings.push_back(std::move(text));
  if (args.json) {
    nlohmann::ordered_json j{{"data", data.describe()}, {"warnings", warnings}};
    j.update(report_json(report));
    if (steps_known(config.train)) j["run_steps"] = config.train.steps;
    j["shown"] = rows_json(rows);
    print_out(fmt::format("{}\n", json_text(j, 2)));
    return;
  }
  print_out(fmt::format("{}\n", data.describe()));
  for (const std::string& text : warnings) print_out(fmt::format("warning: {}\n", text));
  print_out(fmt::format("\n{}\n{}\n{}", rows_text(rows), walked_text(report, config.train), report_text(report)));
}

}  // namespace

void add_data_inspect_command(CLI::App& data) {
  const auto args = std::make_shared<DataInspectArgs>();
  CLI::App* command = data.add_subcommand("inspect", "rows as text with document borders, statistics of the sources, speed");
  add_config_args(*command, args->config, "hlat data inspect --config train.yaml --rows 4");
  command->add_option("--step", args->step, "show rows of this step")->check(within(int64_t{1}, int64_t{1} << 31))->type_name("N");
  command->add_option("--rows", args->rows, "how many rows to show")->check(within(int64_t{0}, int64_t{1} << 24))->type_name("N");
  command->add_option("--tokens", args->tokens, "statistics over so many tokens; default: those of the run, at most a million")
      ->check(within(uint64_t{1}, uint64_t{1} << 60))
      ->type_name("N");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] { run_data_inspect(*args); });
}

}  // namespace hlat
