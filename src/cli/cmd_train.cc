// hlat train: plan, check that it fits, train, and tell what came of it.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "config/print.h"
#include "plan/report.h"
#include "runtime/backends.h"
#include "runtime/peak.h"
#include "train/trainer.h"

namespace hlat {
namespace {

struct Args {
  ConfigArgs config;
  bool json = false;
};

void check_data(const Config& config, const EmbeddedCorpus& corpus) {
  if (!config.data.embedded)
    throw UsageError("data.embedded = false: no other data is named; set data.embedded=true to train on the embedded corpus");
  if (config.model.vocab < corpus.tokenizer().vocab_size())
    throw UsageError(
        fmt::format("model.vocab = {}: the embedded corpus has {} tokens", config.model.vocab, corpus.tokenizer().vocab_size()));
}

std::string summary_text(const Config& config, const TrainSummary& s) {
  std::string text = fmt::format("\ntrained {} steps in {}\n", s.steps, format_duration(s.seconds));
  text += fmt::format("  final loss   {:.4f} (mean of the last {}), floor {:.4f}: {:+.1f}%\n", s.loss, s.loss_steps, s.floor,
                      100.0 * (s.loss / s.floor - 1.0));
  text += fmt::format("  speed        {} tokens/s, MFU {:.1f}%, HFU {:.1f}% of the measured matmul rate\n", format_count(s.tokens_per_s),
                      100 * s.mfu, 100 * s.hfu);
  text += fmt::format("  memory       planned {}, used {}\n", format_bytes(s.planned.total()), format_bytes(s.used.total()));
  text += fmt::format("  run folder   {}\n", config.run.dir);
  if (!s.samples.empty()) text += "\nthe model writes:\n";
  for (const std::string& line : s.samples) text += fmt::format("  {}\n", line);
  return text;
}

nlohmann::ordered_json summary_json(const Config& config, const TrainSummary& s) {
  return {{"steps", s.steps},
          {"loss", s.loss},
          {"floor", s.floor},
          {"tokens_per_s", s.tokens_per_s},
          {"mfu", s.mfu},
          {"hfu", s.hfu},
          {"seconds", s.seconds},
          {"planned_bytes", s.planned.total()},
          {"used_bytes", s.used.total()},
          {"run_dir", config.run.dir},
          {"samples", s.samples}};
}

void run(const Args& args) {
  const Config config = args.config.load().config;
  const EmbeddedCorpus corpus(config.data.seed);
  check_data(config, corpus);
  const auto backend = make_backend(config.device);
  Region measuring;
  const auto scratch_model = backend->make_ops(measuring);
  const Plan plan = dry_run(config, scratch_model.get());
  const Fit fit{.device = "this machine", .available = static_cast<double>(backend->device().memory_available())};
  if (!fit.fits(plan)) fail("{}", fit_text(config, plan, fit, scratch_model.get()));

  const double peak = measure_peak(*backend, precision_of(config.train.precision).compute);
  RunFolder folder(config.run.dir, to_yaml(config), config.run.tensorboard);
  folder.log().info("{}", backend->describe());
  folder.log().info("measured matmul rate {} FLOP/s", format_count(peak));
  folder.log().info("plan\n{}", plan_table(config, plan));
  if (config.train.precision == PrecisionKind::bf16)
    folder.log().warn("precision bf16 rounds every update to the nearest bf16 and is known to diverge; bf16_sr and mixed do not");
  fmt::print(stderr, "{}\n{} parameters, planned memory {}, run folder {}\n", backend->describe(),
             format_count(static_cast<double>(plan.parameters)), format_bytes(plan.memory.total()), config.run.dir);

  Progress progress(std::cerr, progress_options(STDERR_FILENO, config.train.steps));
  const TrainPlan train_plan{.memory = plan.memory,
                             .model_flops_per_token = plan.model_flops_per_token,
                             .executed_flops_per_step = plan.executed_flops(),
                             .peak_flops = peak};
  const TrainSummary summary = train(config, train_plan, *backend, corpus, folder, progress);
  const std::string text = summary_text(config, summary);
  folder.log().info("{}", text);
  if (args.json)
    fmt::print("{}\n", summary_json(config, summary).dump(2));
  else
    fmt::print("{}", text);
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
