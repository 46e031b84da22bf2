// hlat train: plan, check that it fits, train, and tell what came of it.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/failure_word.h"
#include "base/format.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "bench/peak.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/config_warnings.h"
#include "cli/exit_code.h"
#include "cli/goodput_shown.h"
#include "cli/plant_faults.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "cli/run_guard.h"
#include "cli/scan_shown.h"
#include "cli/train_start.h"
#include "cli/train_summary.h"
#include "config/resolve.h"
#include "config/run_length.h"
#include "data/ledger_json.h"
#include "eval/sample_text.h"
#include "plan/report.h"
#include "record/run_file.h"
#include "runtime/assembly.h"
#include "runtime/auto_micro_batch.h"
#include "runtime/backends.h"
#include "runtime/fit_check.h"
#include "runtime/from_rank_0.h"
#include "runtime/loop_tasks.h"
#include "runtime/open_data.h"
#include "runtime/start_point.h"
#include "train/state_records.h"
#include "train/trainer.h"

namespace hlat {
namespace {

struct RunEnd {
  int signal = 0;  // that ended it; 0: none
  bool saved = false;
};

struct TrainArgs {
  ConfigArgs config;
  bool json = false;
  bool fresh = false;
  std::vector<int64_t> skip;  // steps
  int64_t before = 0;         // 0: from the newest checkpoint
  bool unverified = false;    // one whose replicas were not compared will do
};

// What rank 0 tells before the first step.
void introduce(const Config& given, const Config& config, const Session& session, const std::string& machine,
               const std::vector<RankPlan>& stages, const Fit& fit, double peak, const Dataset& data, RunFolder* folder) {
  const RankPlan& plan = fullest(stages);
  folder->log().info("{}", machine);
  folder->log().info("measured matmul rate {} FLOP/s{}", format_count(peak), plan.mesh.ranks() > 1 ? " on rank 0" : "");
  if (given.train.micro_batch == 0) folder->log().info("{}", micro_batch_text(config));
  folder->log().info("plan\n{}", plan_table(config, stages, fit));
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
void tell_end(const TrainArgs& args, const Config& config, const TrainSetup& setup, const TrainSummary& summary) {
  RunAccount run;
  if (setup.folder != nullptr) {
    run = account(read_run_record(setup.folder->dir(), true));
    const std::string text = summary_text(config, summary) + goodput_text(run);
    setup.folder->log().info("{}", text);
    setup.folder->log().info("read\n{}", ledger_text(summary.ledger));
    put_run_file(*setup.folder, "ledger.json", json_text(ledger_json(summary.ledger), 2) + "\n");
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
    nlohmann::ordered_json json = summary_json(config, summary, samples);
    json["goodput"] = goodput_json(run.goodput);
    print_out(args.json ? json_text(json, 2) + "\n" : samples_text(samples));
  }
  if (setup.folder != nullptr) setup.folder->finish();
  if (failed) std::rethrow_exception(failed);
}

// A run whose last step is done; more steps would go on with it.
RunEnd tell_finished(const Config& config, const StartPoint& from, bool leads) {
  if (from.kind != StartKind::continued)
    fail<UsageError>("checkpoint.resume_from = {} is a checkpoint of step {}, and train.steps is {}: give more train.steps",
                     config.checkpoint.resume_from, from.step(), config.train.steps);
  if (leads)
    print_err(fmt::format("step {} of {} is done (run folder {}): give more train.steps to go on, or --fresh to start anew\n", from.step(),
                          config.train.steps, config.run.dir));
  return {};
}

// Throws what the end of a run is, unless it is finished. What was trained is recorded and shown by now.
void end_run(const TrainSummary& s, bool leads, RunGuard& guard) {
  const bool saved = s.saved_step == s.steps;
  if (s.ended_by == 0 && !s.save_problem.empty())
    fail<FaultError>("trained to step {}, but the last save failed: {}; {}", s.steps, s.save_problem,
                     s.saved_step ? fmt::format("the last checkpoint is that of step {}", *s.saved_step) : "there is no checkpoint");
  guard.over();
  if (leads)
    guard.ended(
        s.ended_by == 0 ? "finished" : fmt::format("{} ended it after step {}{}", signal_name(s.ended_by), s.steps, saved ? ", saved" : ""),
        s.ended_by == 0 ? kOk : exit_code_of_signal(s.ended_by, saved));
}

// A save that is under way ends by itself, unless its disk hangs: patience is for the time without progress.
bool hangs(const Saver* saver, double patience_s) {
  double limit = now_s() + patience_s;
  uint64_t progress = 0;
  while (saver != nullptr && saver->busy()) {
    if (const uint64_t now = saver->progress(); std::exchange(progress, now) != now) limit = now_s() + patience_s;
    if (now_s() > limit) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

// From the first step to the end. The saver's own end waits for its disk; where that hangs, the process ends without it.
RunEnd train_to_end(const TrainArgs& args, const Config& config, TrainSetup& setup, TrainState& state, const Saver* saver,
                    RunGuard& guard) {
  double patience_s = static_cast<double>(config.parallel.timeout_s);
  try {
    const TrainSummary summary = train(config, setup, state, guard.step());
    if (!summary.save_problem.empty()) patience_s = 0;  // it has been waited for
    tell_end(args, config, setup, summary);
    end_run(summary, setup.folder != nullptr, guard);
    const RunEnd end{.signal = summary.ended_by, .saved = summary.saved_step == summary.steps};
    if (hangs(saver, patience_s))
      guard.leave_save_behind("a save has not ended", end.signal != 0 ? exit_code_of_signal(end.signal, end.saved) : kFault);
    return end;
  } catch (const std::exception& e) {
    if (hangs(saver, patience_s)) {
      guard.flight().ended(exit_code_of(e), reason_of(e));
      guard.leave_save_behind(e.what(), exit_code_of(e));
    }
    throw;
  }
}

// Values of tasks, once rank 0 has logged and shown them.
std::vector<std::pair<std::string, double>> told(LoopEvaluation found, const TrainSetup& setup) {
  if (setup.folder == nullptr || found.line.empty()) return std::move(found.values);
  for (const std::string& words : found.warnings) setup.folder->log().warn("{}", words);
  setup.folder->log().info("{}", found.line);
  setup.progress->say(found.line);
  return std::move(found.values);
}

// Rank 0's: all ranks must skip the same steps.
std::vector<int64_t> same_list(Comm& world, const std::vector<int64_t>& own) {
  return nlohmann::json::parse(from_rank_0(world, [&] { return json_text(nlohmann::json(own)); })).get<std::vector<int64_t>>();
}

// Returns how the run ended: the signal, or 0, and whether all is saved.
RunEnd run_rank(const TrainArgs& args, const Config& given, Config config, Session& session, RunGuard& guard, fault::Injector* faults) {
  const bool leads = session.rank() == 0;
  StartWatch& start = guard.start();
  start.begin("looking for checkpoints");
  StartPoint from = find_start(config, args.fresh, session.world(), {.step = args.before, .verified = !args.unverified});
  if (leads && args.before > 0 && !from.resumes())
    print_err(fmt::format("there is no checkpoint before step {}: the run starts from its beginning\n", args.before));
  start.begin("preparing the device");
  const auto backend = make_backend(config.device, session.place());
  // Before anything is planned or computed with other kernels.
  const std::vector<std::string> kernels = backend->use_kernel_choices(saved_kernels(from.index, session.rank()));
  const int threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : session.threads();
  start.begin(leads ? "opening the data: reading or making the document indices" : "opening the data, after rank 0");
  double loads_since = now_s(), load_s = 0;  // what reading takes of the start
  const ScanObserver scanned = [shown = shown_on_stderr(), &guard](const ScanProgress& p) {
    shown(p);
    guard.flight().beat();
  };
  const std::unique_ptr<Dataset> data = open_data(config, session.world(), session.ranks_on_host(), threads, scanned);
  if (config.train.epochs > 0) start.begin("counting the tokens of the data, for train.epochs");
  config = with_steps(std::move(config), data.get(), session.world(), threads);
  load_s += now_s() - loads_since;
  check_start(config, from);
  if (from.step() >= config.train.steps) return tell_finished(config, from, leads);
  check_data(from, data.get());
  std::optional<LoopTasks> tasks;
  if (config.eval.in_loop()) tasks.emplace(config, session.world());
  start.begin("connecting the groups of ranks and planning");
  config = with_micro_batch(config, *backend, session.world(), session.local_ranks(), saved_micro_batch(config, from));
  Assembly assembly(config, *backend, session.world(), session.local_ranks());
  assembly.connect();
  check_fit(config, assembly, session.world(), session.host());
  const Fit fit = assembly.fit();
  std::vector<RankPlan> stages;
  if (leads) stages = plan_stages(config, assembly.target());
  start.begin("opening the run folder");
  RunFolder* folder = open_folder(given, config, from, args.fresh, session, guard);
  start.begin("taking memory");
  const double peak = measure_peak(*backend, precision_of(config));
  TrainSetup setup{.plan = assembly.plan(), .peak_flops = peak, .model = assembly.build(), .data = data.get()};
  setup.flight = &guard.flight();
  setup.model.ops().record_to(guard.flight());
  setup.model.mesh().record_to(guard.flight());
  if (faults != nullptr) faults->place(setup.model.mesh(), setup.model.executor().params(), setup.model.device(), config.train.steps);
  setup.faults = faults;
  setup.tell_loss = [&](const LossEvent& event) { guard.tell_loss(event); };
  setup.end_signal = [&] { return guard.end_signal(); };
  setup.notes = [&] { return backend->take_kernel_notes(); };
  std::optional<Progress> progress;
  if (leads) {
    introduce(given, config, session, assembly.describe(), stages, fit, peak, *data, folder);
    nlohmann::ordered_json plan = plan_json(config, stages, fit, assembly.target());
    plan["warnings"] = config_warnings(config);
    put_run_file(*folder, "plan.json", json_text(plan, 2) + "\n");
    for (const std::string& line : kernels) folder->log().info("{}", line);
    setup.folder = folder;
    setup.progress = &progress.emplace(std::cerr, progress_options(STDERR_FILENO, config.train.steps));
  }
  loads_since = now_s();
  start.begin(from.kind == StartKind::anew ? "making the initial weights" : "loading the checkpoint");
  TrainState state = start_run(from, config, setup.model, session, threads, folder);
  load_s += now_s() - loads_since;
  ask_to_skip(state.loss, state.step, same_list(session.world(), args.skip));
  const std::unique_ptr<Saver> saver =
      make_saver(config, fit.lines(config, assembly.plan()).staging, from, *backend, session, guard, setup);
  if (tasks) {
    start.begin("rehearsing the evaluation of tasks");
    tasks->place(setup.model.executor());
    setup.evaluation_due = [&](int64_t step) { return tasks->due(step); };
    setup.evaluate = [&](int64_t step) { return told(tasks->after(step, [&] { return guard.end_signal() != 0; }), setup); };
  }
  start.begin("the first step");
  std::optional<LiveGoodput> goodput;
  if (leads) goodput = guard.ready(state.step, config.train.steps, load_s);
  if (goodput) setup.goodput = [&](const StepMetrics& m) { return goodput->step(m.step_s, m.save_wait_s.value_or(0), wall_time()); };
  return train_to_end(args, config, setup, state, saver.get(), guard);
}

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
          session, config, guard.step(), [&] { end = run_rank(args, given, config, session, guard, faults.get()); }, tell);
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
  CLI::Option* fresh = command->add_flag("--fresh", args->fresh, "start anew: what the run folder has is moved to its folder previous_N");
  command->add_option("--skip", args->skip, "steps whose batches are passed over: 12,57; checkpoints remember them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(within(int64_t{1}, int64_t{1} << 56))
      ->type_name("STEPS");
  CLI::Option* before =
      command->add_option("--before", args->before, "go back to the newest verified checkpoint before this step; later ones are set aside")
          ->check(within(int64_t{1}, int64_t{1} << 56))
          ->excludes(fresh)
          ->type_name("STEP");
  command->add_flag("--unverified", args->unverified, "with --before: also to one whose replicas were not compared")->needs(before);
  command->add_flag("--json", args->json, "print the summary as one JSON object");
  command->callback([args] { run_train(*args); });
}

}  // namespace hlat
