// hlat train: plan, check that it fits, train, and tell what came of it.
#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <memory>
#include <optional>

#include "base/format.h"
#include "base/json_text.h"
#include "bench/peak.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/config_warnings.h"
#include "cli/exit_code.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "cli/run_guard.h"
#include "cli/scan_shown.h"
#include "comm/host_exchange.h"
#include "config/print.h"
#include "config/resolve.h"
#include "config/run_length.h"
#include "eval/sample_text.h"
#include "plan/report.h"
#include "record/utilization.h"
#include "runtime/assembly.h"
#include "runtime/auto_micro_batch.h"
#include "runtime/backends.h"
#include "runtime/fit_check.h"
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
  if (s.ended_by != 0) text += fmt::format("  ended by     {}, before step {}\n", signal_name(s.ended_by), config.train.steps);
  text += fmt::format("  final loss   {:.4f}{}", s.loss, s.loss_steps > 1 ? fmt::format(" (mean of the last {})", s.loss_steps) : "");
  text += s.floor ? fmt::format(", floor {:.4f}: {:+.1f}%\n", *s.floor, 100.0 * (s.loss / *s.floor - 1.0)) : "\n";
  if (const auto& v = s.validation)
    text += fmt::format("  held out     loss {:.4f}, perplexity {:.2f}, {:.4f} bits per byte\n", v->loss, v->perplexity, v->bits_per_byte);
  if (s.validation && s.validation->sets.size() > 1)
    for (const SetLoss& set : s.validation->sets)
      text += fmt::format("    {:<10} loss {:.4f}, {:.4f} bits per byte\n", set.name, set.loss, set.bits_per_byte);
  text += fmt::format("  speed        {}\n", speed_text(s.tokens_per_s, s.mfu, s.hfu, s.timed_steps));
  text += fmt::format("  memory       planned {}, used {}; process resident {}{}\n", format_bytes(s.planned.total()),
                      format_bytes(s.used.total()), format_bytes(s.resident),
                      s.device_in_use > 0 ? fmt::format(", device {} in use", format_bytes(s.device_in_use)) : "");
  text += fmt::format("  run folder   {}\n", config.run.dir);
  return text;
}

std::string samples_text(const std::vector<std::string>& samples) {
  std::string text = samples.empty() ? "" : "\nthe model writes:\n";
  for (const std::string& line : samples) text += fmt::format("  {}\n", line);
  return text;
}

nlohmann::ordered_json summary_json(const Config& config, const TrainSummary& s, const std::vector<std::string>& samples) {
  nlohmann::ordered_json j{{"steps", s.steps}};
  put_number(j, "loss", s.loss);
  j["floor"] = s.floor ? nlohmann::ordered_json(*s.floor) : nlohmann::ordered_json();  // null when it is not known
  for (const char* key : {"val_loss", "val_ppl", "val_bpb"}) j[key] = nullptr;         // unless something is held out
  if (const auto& v = s.validation) {
    put_number(j, "val_loss", v->loss);
    put_number(j, "val_ppl", v->perplexity);
    put_number(j, "val_bpb", v->bits_per_byte);
    j["val_losses"] = nlohmann::ordered_json::object();  // by source
    for (const SetLoss& set : v->sets) put_number(j["val_losses"], set.name.c_str(), set.loss);
  }
  j.update({{"data_wait_s", s.data_wait_s},
            {"documents", s.ledger.documents()},
            {"tokens_per_s", s.tokens_per_s},
            {"mfu", is_utilization(s.mfu, s.timed_steps) ? nlohmann::ordered_json(s.mfu) : nlohmann::ordered_json()},  // null: not known
            {"hfu", is_utilization(s.hfu, s.timed_steps) ? nlohmann::ordered_json(s.hfu) : nlohmann::ordered_json()},
            {"seconds", s.seconds},
            {"planned_bytes", s.planned.total()},
            {"used_bytes", s.used.total()},
            {"resident_bytes", s.resident},
            {"device_bytes", s.device_in_use},
            {"run_dir", config.run.dir},
            {"ended_by", s.ended_by == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(signal_name(s.ended_by))},
            {"samples", samples}});
  return j;
}

// Before any memory is taken. Rank 0 has the folder, the others only learn which it is.
RunFolder* open_folder(const Config& given, const Config& config, const Session& session, RunGuard& guard) {
  RunFolder* folder = nullptr;
  if (session.rank() == 0) {
    const auto say = [](const std::string& text) { print_err(fmt::format("hlat: {}\n", text)); };
    folder = &guard.open(std::make_unique<RunFolder>(config.run.dir, run_record(given, config), config.run.tensorboard,
                                                     static_cast<double>(config.run.lease_s), say));
  }
  const uint64_t token = broadcast_value(session.world(), folder != nullptr ? folder->lease().token() : 0, 0);
  if (folder == nullptr) guard.join(token);
  return folder;
}

// What rank 0 tells before the first step.
void introduce(const Config& given, const Config& config, const Session& session, const std::string& machine,
               const std::vector<RankPlan>& stages, double peak, const Dataset& data, RunFolder* folder) {
  const RankPlan& plan = fullest(stages);
  folder->log().info("{}", machine);
  folder->log().info("measured matmul rate {} FLOP/s{}", format_count(peak), plan.mesh.ranks() > 1 ? " on rank 0" : "");
  if (given.train.micro_batch == 0) folder->log().info("{}", micro_batch_text(config));
  folder->log().info("plan\n{}", plan_table(config, stages));
  folder->log().info("data\n{}", data.describe());
  for (const std::string& text : data.warnings()) folder->log().warn("{}", text);
  for (const std::string& text : config_warnings(config)) folder->log().warn("{}", text);
  if (const std::string length = length_text(config.train); !length.empty()) folder->log().info("{}", length);
  if (!session.advice().empty()) folder->log().warn("{}", session.advice());
  const std::string mesh = plan.mesh.ranks() > 1 ? "\n" + mesh_text(config) : "";
  print_err(fmt::format("{}{}\n{} parameters, planned memory {}{}, run folder {}\n", machine, mesh,
                        format_count(static_cast<double>(plan.parameters)), format_bytes(plan.memory.total()),
                        plan.mesh.ranks() > 1 ? " per rank" : "", config.run.dir));
}

// The summary is recorded and shown before anything is written by the model. Collective; only rank 0 has a folder.
void tell_end(const Args& args, const Config& config, const TrainSetup& setup, const TrainSummary& summary) {
  if (setup.folder != nullptr) {
    const std::string text = summary_text(config, summary);
    setup.folder->log().info("{}", text);
    setup.folder->log().info("read\n{}", ledger_text(summary.ledger));
    if (!args.json) print_out(text);
  }
  std::vector<std::string> samples;
  std::exception_ptr failed;
  if (summary.ended_by == 0 && config.run.sample_lines > 0) try {
      if (setup.folder != nullptr) print_err("\nthe run is finished; the model writes samples\n");
      samples = sample_texts(setup.model.executor(), setup.data, config.run.sample_lines);
    } catch (const Error&) {
      failed = std::current_exception();
    }
  if (setup.folder != nullptr) {
    if (!samples.empty()) setup.folder->log().info("{}", samples_text(samples));
    print_out(args.json ? json_text(summary_json(config, summary, samples), 2) + "\n" : samples_text(samples));
  }
  if (failed) std::rethrow_exception(failed);
}

// Returns the signal that ended the run; 0: none.
int run_rank(const Args& args, const Config& given, Config config, Session& session, RunGuard& guard) {
  const bool leads = session.rank() == 0;
  StartWatch& start = guard.start();
  start.begin("preparing the device");
  const auto backend = make_backend(config.device, session.place());
  const int threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : session.threads();
  start.begin(leads ? "opening the data: reading or making the document indices" : "opening the data, after rank 0");
  const std::unique_ptr<Dataset> data = open_data(config, session.world(), session.ranks_on_host(), threads, shown_on_stderr());
  if (config.train.epochs > 0) start.begin("counting the tokens of the data, for train.epochs");
  config = with_steps(std::move(config), data.get(), session.world(), threads);
  start.begin("connecting the groups of ranks and planning");
  config = with_micro_batch(std::move(config), *backend, session.world(), session.local_ranks());
  Assembly assembly(config, *backend, session.world(), session.local_ranks());
  assembly.connect();
  check_fit(config, assembly, session.world(), session.host());
  std::vector<RankPlan> stages;
  if (leads) stages = plan_stages(config, assembly.target());
  start.begin("opening the run folder");
  RunFolder* folder = open_folder(given, config, session, guard);
  start.begin("taking memory");
  const double peak = measure_peak(*backend, precision_of(config.train.precision).compute);
  TrainSetup setup{.plan = assembly.plan(), .peak_flops = peak, .model = assembly.build(), .data = data.get()};
  setup.end_signal = [&] { return guard.end_signal(); };
  std::optional<Progress> progress;
  if (leads) {
    introduce(given, config, session, assembly.describe(), stages, peak, *data, folder);
    setup.folder = folder;
    setup.progress = &progress.emplace(std::cerr, progress_options(STDERR_FILENO, config.train.steps));
  }
  setup.model.executor().init_weights();
  start.begin("the first step");
  TrainState state;
  const TrainSummary summary = train(config, setup, state, guard.step());
  tell_end(args, config, setup, summary);
  const int ended_by = summary.ended_by;
  if (leads)
    guard.ended(ended_by == 0 ? "finished" : fmt::format("{} ended it after step {}", signal_name(ended_by), summary.steps),
                ended_by == 0 ? kOk : kEndedBySignal + ended_by);
  return ended_by;
}

void run(const Args& args) {
  const Launch launch = this_launch();
  RunGuard guard(launch);
  guard.start().begin("reading the config");
  const Config given = args.config.load().config;
  const Config config = with_ranks(given, launch.ranks);
  guard.configure(config);
  guard.start().begin("joining the other ranks (MPI_Init)");
  int ended_by = 0;
  {
    Session session(launch, config.parallel.start_timeout_s);
    guard.meet(session);
    const OnFailure tell = [&](const std::exception& e, int code) { return guard.failed(e, code); };
    run_on_ranks(
        session, config, guard.step(), [&] { ended_by = run_rank(args, given, config, session, guard); }, tell);
    guard.part();
  }
  if (ended_by != 0) throw Interrupted(ended_by, signal_name(ended_by));
}

}  // namespace

void add_train_command(CLI::App& app) {
  const auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("train", "train a model");
  add_config_args(*command, args->config, "hlat train --config configs/nano.yaml train.steps=100 run.dir=runs/try");
  command->add_flag("--json", args->json, "print the summary as one JSON object");
  command->callback([args] { run(*args); });
}

}  // namespace hlat
