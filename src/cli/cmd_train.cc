// hlat train: plan, check that it fits, train, and tell what came of it.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "bench/peak.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/ranks.h"
#include "cli/scan_shown.h"
#include "config/print.h"
#include "config/resolve.h"
#include "plan/report.h"
#include "runtime/assembly.h"
#include "runtime/backends.h"
#include "runtime/open_data.h"
#include "train/trainer.h"

namespace hlat {
namespace {

struct Args {
  ConfigArgs config;
  bool json = false;
};

std::string summary_text(const Config& config, const TrainSummary& s) {
  std::string text = fmt::format("\ntrained {} step{} in {}\n", s.steps, s.steps == 1 ? "" : "s", format_duration(s.seconds));
  text += fmt::format("  final loss   {:.4f} (mean of the last {})", s.loss, s.loss_steps);
  text += s.floor ? fmt::format(", floor {:.4f}: {:+.1f}%\n", *s.floor, 100.0 * (s.loss / *s.floor - 1.0)) : "\n";
  const ValidationResult& v = s.validation;
  if (v.loss == v.loss)
    text += fmt::format("  held out     loss {:.4f}, perplexity {:.2f}, {:.4f} bits per byte\n", v.loss, v.perplexity, v.bits_per_byte);
  if (v.sets.size() > 1)
    for (const SetLoss& set : v.sets)
      text += fmt::format("    {:<10} loss {:.4f}, {:.4f} bits per byte\n", set.name, set.loss, set.bits_per_byte);
  text += fmt::format("  speed        {} tokens/s, MFU {:.1f}%, HFU {:.1f}% of the measured matmul rate\n", format_count(s.tokens_per_s),
                      100 * s.mfu, 100 * s.hfu);
  text += fmt::format("  memory       planned {}, used {}\n", format_bytes(s.planned.total()), format_bytes(s.used.total()));
  text += fmt::format("  run folder   {}\n", config.run.dir);
  if (!s.samples.empty()) text += "\nthe model writes:\n";
  for (const std::string& line : s.samples) text += fmt::format("  {}\n", line);
  return text;
}

nlohmann::ordered_json summary_json(const Config& config, const TrainSummary& s) {
  auto losses = nlohmann::ordered_json::object();  // by source
  for (const SetLoss& set : s.validation.sets) losses[set.name] = set.loss;
  return {{"steps", s.steps},
          {"loss", s.loss},
          {"floor", s.floor ? nlohmann::ordered_json(*s.floor) : nlohmann::ordered_json()},  // null when it is not known
          {"val_loss", s.validation.loss},
          {"val_ppl", s.validation.perplexity},
          {"val_bpb", s.validation.bits_per_byte},
          {"val_losses", losses},
          {"data_wait_s", s.data_wait_s},
          {"documents", s.ledger.documents()},
          {"tokens_per_s", s.tokens_per_s},
          {"mfu", s.mfu},
          {"hfu", s.hfu},
          {"seconds", s.seconds},
          {"planned_bytes", s.planned.total()},
          {"used_bytes", s.used.total()},
          {"run_dir", config.run.dir},
          {"samples", s.samples}};
}

// What rank 0 writes before the first step.
std::unique_ptr<RunFolder> open_folder(const Config& config, const Session& session, const std::string& machine,
                                       const std::vector<RankPlan>& stages, double peak, const Dataset& data) {
  auto folder = std::make_unique<RunFolder>(config.run.dir, to_yaml(config), config.run.tensorboard);
  const RankPlan& plan = fullest(stages);
  folder->log().info("{}", machine);
  folder->log().info("measured matmul rate {} FLOP/s{}", format_count(peak), plan.mesh.ranks() > 1 ? " on rank 0" : "");
  folder->log().info("plan\n{}", plan_table(config, stages));
  folder->log().info("data\n{}", data.describe());
  for (const std::string& text : data.warnings()) folder->log().warn("{}", text);
  if (config.train.precision == PrecisionKind::bf16)
    folder->log().warn("precision bf16 rounds every update to the nearest bf16 and is known to diverge; bf16_sr and mixed do not");
  if (!session.advice().empty()) folder->log().warn("{}", session.advice());
  const std::string mesh = plan.mesh.ranks() > 1 ? "\n" + mesh_text(config) : "";
  fmt::print(stderr, "{}{}\n{} parameters, planned memory {}{}, run folder {}\n", machine, mesh,
             format_count(static_cast<double>(plan.parameters)), format_bytes(plan.memory.total()),
             plan.mesh.ranks() > 1 ? " per rank" : "", config.run.dir);
  return folder;
}

void run_rank(const Args& args, const Config& config, const Session& session, int64_t& step) {
  const bool leads = session.rank() == 0;
  const int threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : session.threads();
  const std::unique_ptr<Dataset> data = open_data(config, session.world(), session.ranks_on_host(), threads, shown_on_stderr());
  const auto backend = make_backend(config.device, session.place());
  Assembly assembly(config, *backend, session.world(), session.local_ranks());
  std::vector<RankPlan> stages;
  if (leads) {
    stages = plan_stages(config, assembly.target());
    // Other ranks are waiting where the mesh is made, and end with this one.
    const Fit fit = assembly.fit();
    if (!fit.fits(fullest(stages))) fail("{}", fit_text(config, stages, fit, assembly.target()));
  }
  const double peak = measure_peak(*backend, precision_of(config.train.precision).compute);
  TrainSetup setup{.plan = assembly.plan(), .peak_flops = peak, .model = assembly.build(), .data = data.get()};
  std::unique_ptr<RunFolder> folder;
  std::optional<Progress> progress;
  if (leads) {
    folder = open_folder(config, session, assembly.describe(), stages, peak, *data);
    setup.folder = folder.get();
    setup.progress = &progress.emplace(std::cerr, progress_options(STDERR_FILENO, config.train.steps));
  }
  setup.model.executor().init_weights();
  TrainState state;
  const TrainSummary summary = train(config, setup, state, step);
  if (!leads) return;
  const std::string text = summary_text(config, summary);
  folder->log().info("{}", text);
  folder->log().info("read\n{}", ledger_text(summary.ledger));
  if (args.json)
    fmt::print("{}\n", summary_json(config, summary).dump(2));
  else
    fmt::print("{}", text);
}

void run(const Args& args) {
  const Launch launch = this_launch();
  const Config config = with_ranks(args.config.load().config, launch.ranks);
  Session session(launch, config.parallel.timeout_s);
  int64_t step = 0;
  run_on_ranks(session, config, step, [&] { run_rank(args, config, session, step); });
}

}  // namespace

void add_train_command(CLI::App& app) {
  const auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("train", "train a model");
  add_config_args(*command, args->config);
  command->add_flag("--json", args->json, "print the summary as one JSON object");
  command->callback([args] { run(*args); });
}

}  // namespace hlat
