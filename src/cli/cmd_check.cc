// hlat check: burn-in. Whether the ranks of a job compute, remember, store and exchange rightly and equally fast, before a run is given to
// them; with --model whether the model that they are to train is right. Exit code 0: all are well, perhaps with warnings; 4: a rank is
// wrong, slow or out of room; 5: a check of the model has failed.
#include <fmt/format.h>

#include <memory>

#include "base/exit_code.h"
#include "base/json_text.h"
#include "base/table.h"
#include "burnin/check.h"
#include "cli/commands.h"
#include "cli/on_ranks.h"
#include "cli/print.h"
#include "cli/version.h"
#include "runtime/backends.h"
#include "selfcheck/self_check.h"

namespace hlat {
namespace {

struct CheckArgs {
  ConfigArgs config;
  CheckOptions options;
  std::string only;
  bool json = false;
  bool model = false;
};

std::string check_text(const CheckReport& report) {
  std::string text;
  for (const PartReport& part : report.parts) {
    text += fmt::format("{}: {} ({:.1f} s)\n", part.name, part.title, part.seconds);
    if (part.rows.empty()) continue;
    std::vector<std::vector<std::string>> indented = part.rows;
    for (auto& row : indented) row.insert(row.begin(), "");
    text += table_text(indented, "l" + part.alignment);
  }
  return text + (text.empty() ? "" : "\n") + report.verdict();
}

void run_model_checks(const CheckArgs& args) {
  const std::set<std::string> only = args.only.empty() ? std::set<std::string>{} : parse_model_checks(args.only);
  bool well = true;
  on_ranks(args.config, [&](const Config& config, Session& session) {
    const auto backend = make_backend(config.device, session.place());
    SelfCheckPlace place{.backend = *backend,
                         .world = session.world(),
                         .local_ranks = session.local_ranks(),
                         .threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : session.threads(),
                         .on_host = session.ranks_on_host()};
    // For a program that gives up on it: how far it came.
    if (args.json && session.rank() == 0) place.begins = [](const char* name) { print_err(fmt::format("check: {}\n", name)); };
    const SelfCheckReport report = run_self_checks(config, place, only);
    well = report.well();
    if (session.rank() == 0) print_out(args.json ? json_text(report.json(), 2) + "\n" : report.text());
  });
  if (!well) throw CLI::RuntimeError(kNumerical);
}

void run_check_command(const CheckArgs& args) {
  if (args.model) return run_model_checks(args);
  CheckOptions options = args.options;
  options.version = version();
  if (!args.only.empty()) options.only = parse_parts(args.only);
  bool well = true;
  on_ranks(args.config, [&](const Config& config, Session& session) {
    const auto backend = make_backend(config.device, session.place());
    const auto tell = [&](const std::string& words) { print_err(fmt::format("check: {}\n", words)); };
    const CheckReport report =
        run_check(config, *backend, session, options, options.short_form ? std::function<void(const std::string&)>{} : tell);
    well = report.well();
    if (session.rank() == 0) print_out(args.json ? json_text(report.json(), 2) + "\n" : check_text(report));
  });
  if (!well) throw CLI::RuntimeError(kFault);
}

}  // namespace

void add_check_command(CLI::App& app) {
  const auto args = std::make_shared<CheckArgs>();
  CLI::App* command = app.add_subcommand("check", "burn-in: do all ranks compute, store and communicate correctly and equally fast");
  add_config_args(*command, args->config, "mpirun -n 8 hlat check --config configs/llama-134m.yaml --minutes 10");
  CLI::Option* model = command->add_flag("--model", args->model, "test the model instead of the machines, in seconds, on a shrunk copy");
  CLI::Option* quick = command->add_flag("--short", args->options.short_form, "a check of seconds instead of minutes")->excludes(model);
  command->add_option("--minutes", args->options.minutes, "how long products and memory patterns are repeated")
      ->check(within(0.01, 100000.0))
      ->excludes(quick)
      ->excludes(model)
      ->type_name("M");
  command
      ->add_option("--only", args->only,
                   fmt::format("only these parts, separated by commas: {}; with --model: {}", fmt::join(kCheckParts, ","),
                               fmt::join(kModelChecks, ",")))
      ->type_name("PARTS");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] { run_check_command(*args); });
}

}  // namespace hlat
