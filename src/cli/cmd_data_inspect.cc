// hlat data inspect: rows as the model would see them, statistics of the sources, and how fast they are read.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/scan_shown.h"
#include "data/inspect.h"

namespace hlat {
namespace {

struct Args {
  ConfigArgs config;
  int64_t step = 1;
  int64_t rows = 2;
  uint64_t tokens = 1'000'000;
  bool json = false;
};

void run(const Args& args) {
  const Dataset data(args.config.load().config, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), nullptr,
                     shown_on_stderr());
  const std::vector<ShownRow> rows = show_rows(data, args.step, args.rows);
  const DataReport report = inspect_data(data, args.tokens);
  if (args.json) {
    nlohmann::ordered_json j{{"data", data.describe()}, {"warnings", data.warnings()}};
    j.update(report_json(report));
    j["shown"] = rows_json(rows);
    // A row can cut a character in two.
    fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("{}\n", data.describe());
  for (const std::string& text : data.warnings()) fmt::print("warning: {}\n", text);
  fmt::print("\n{}\n{}", rows_text(rows), report_text(report));
}

}  // namespace

void add_data_inspect_command(CLI::App& data) {
  const auto args = std::make_shared<Args>();
  CLI::App* command = data.add_subcommand("inspect", "rows as text with document borders, statistics of the sources, speed");
  add_config_args(*command, args->config);
  command->add_option("--step", args->step, "show rows of this step")->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  command->add_option("--rows", args->rows, "how many rows to show")->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
  command->add_option("--tokens", args->tokens, "statistics over the first steps with this many tokens");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] { run(*args); });
}

}  // namespace hlat
