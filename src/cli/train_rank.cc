#include "cli/train_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "bench/peak.h"
#include "cli/config_warnings.h"
#include "cli/print.h"
#include "cli/scan_shown.h"
#include "cli/train_start.h"
#include "config/run_length.h"
#include "plan/report.h"
#include "record/metrics_tail.h"
#include "record/run_file.h"
#include "record/run_journal.h"
#include "record/run_overview.h"
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

// Rank 0's: all ranks must skip the same steps.
std::vector<int64_t> same_list(Comm& world, const std::vector<int64_t>& own) {
  return nlohmann::json::parse(from_rank_0(world, [&] { return json_text(nlohmann::json(own)); })).get<std::vector<int64_t>>();
}

// What is made on the way to the first step lives to the end of the run.
class TrainRank {
 public:
  TrainRank(const TrainArgs& args, const Config& given, const Config& config, Session& session, RunGuard& guard, fault::Injector* faults)
      : args_(args), given_(given), config_(config), session_(session), world_(session.world()), guard_(guard), faults_(faults) {}

  RunEnd run() {
    find_checkpoint();
    prepare_device();
    read_data();
    check_start(config_, from_);
    const Rest rest = rest_of_run();
    if (!rest.left) return tell_finished(config_, from_, leads_);
    check_data(from_, data_.get());
    if (config_.eval.in_loop() && rest.tasks) tasks_.emplace(config_, world_);
    make_plan();
    start_.begin("opening the run folder");
    folder_ = open_folder(given_, config_, from_, args_.fresh, session_, guard_);
    TrainSetup setup = take_memory();
    if (leads_) introduce(setup);
    TrainState state = load(setup);
    const std::unique_ptr<Saver> saver =
        make_saver(config_, fit_.lines(config_, assembly_->plan()).staging, from_, *backend_, session_, guard_, setup);
    if (tasks_) rehearse(setup);
    start_.begin("the first step");
    std::optional<LiveGoodput> goodput;
    if (leads_) goodput = guard_.ready(state.step, config_.train.steps, load_s_);
    if (goodput)
      setup.goodput = [&](const StepMetrics& m) { return goodput->step(m.step_s, m.save_wait_s.value_or(0), wall_time(), m.computed); };
    return train_to_end(args_.json, config_, setup, state, saver.get(), guard_);
  }

 private:
  struct Rest {
    bool left = false;   // something to do
    bool tasks = false;  // among it evaluations
  };

  void find_checkpoint() {
    start_.begin("looking for checkpoints");
    from_ = find_start(config_, args_.fresh, world_, {.step = args_.before, .verified = !args_.unverified});
    if (leads_ && args_.before > 0 && !from_.resumes())
      print_err(fmt::format("there is no checkpoint before step {}: the run starts from its beginning\n", args_.before));
  }

  // What an earlier process did not come to behind the last step, or failed at, is made now. Collective.
  Rest rest_of_run() {
    if (from_.step() < config_.train.steps) return {.left = true, .tasks = true};
    if (from_.step() > config_.train.steps || from_.kind != StartKind::continued) return {};
    const std::string left = from_rank_0(world_, [this] {
      const std::filesystem::path folder = config_.run.dir;
      if (!is_run_folder(folder) || recorded_finish(folder)) return std::string();
      return std::string(last_recorded_step(folder / "eval.jsonl").value_or(0) < from_.step() ? "end tasks" : "end");
    });
    return {.left = !left.empty(), .tasks = left == "end tasks"};
  }

  void prepare_device() {
    start_.begin("preparing the device");
    backend_ = make_backend(config_.device, session_.place());
    // Before anything is planned or computed with other kernels.
    kernels_ = backend_->use_kernel_choices(saved_kernels(from_.index, session_.rank()));
    threads_ = config_.device.threads > 0 ? static_cast<int>(config_.device.threads) : session_.threads();
  }

  void read_data() {
    start_.begin(leads_ ? "opening the data: reading or making the document indices" : "opening the data, after rank 0");
    const double since = now_s();
    const ScanObserver scanned = [this, shown = shown_on_stderr()](const ScanProgress& p) {
      shown(p);
      guard_.flight().beat();
    };
    data_ = open_data(config_, world_, session_.ranks_on_host(), threads_, scanned);
    if (config_.train.epochs > 0) start_.begin("counting the tokens of the data, for train.epochs");
    config_ = with_steps(std::move(config_), data_.get(), world_, threads_);
    load_s_ += now_s() - since;
  }

  void make_plan() {
    start_.begin("connecting the groups of ranks and planning");
    config_ = with_micro_batch(config_, *backend_, world_, session_.local_ranks(), saved_micro_batch(config_, from_));
    assembly_.emplace(config_, *backend_, world_, session_.local_ranks());
    assembly_->connect();
    check_fit(config_, *assembly_, world_, session_.host());
    fit_ = assembly_->fit();
    if (leads_) stages_ = plan_stages(config_, assembly_->target());
  }

  TrainSetup take_memory() {
    start_.begin("taking memory");
    const double peak = measure_peak(*backend_, precision_of(config_));
    TrainSetup setup{.plan = assembly_->plan(), .peak_flops = peak, .model = assembly_->build(), .data = data_.get()};
    setup.flight = &guard_.flight();
    setup.model.ops().record_to(guard_.flight());
    setup.model.mesh().record_to(guard_.flight());
    if (faults_ != nullptr) faults_->place(setup.model.mesh(), setup.model.executor().params(), setup.model.device(), config_.train.steps);
    setup.faults = faults_;
    setup.tell_loss = [this](const LossEvent& event) { guard_.tell_loss(event); };
    setup.end_signal = [this] { return guard_.end_signal(); };
    setup.notes = [this] { return backend_->take_kernel_notes(); };
    return setup;
  }

  // What rank 0 tells before the first step, and where it tells what follows.
  void introduce(TrainSetup& setup) {
    const RankPlan& plan = fullest(stages_);
    const std::string machine = assembly_->describe();
    auto& log = folder_->log();
    log.info("{}", machine);
    log.info("measured matmul rate {} FLOP/s{}", format_count(setup.peak_flops), plan.mesh.ranks() > 1 ? " on rank 0" : "");
    if (given_.train.micro_batch == 0) log.info("{}", micro_batch_text(config_));
    log.info("plan\n{}", plan_table(config_, stages_, fit_));
    log.info("data\n{}", data_->describe());
    const std::vector<std::string> warnings = config_warnings(config_);
    for (const std::string& text : data_->warnings()) log.warn("{}", text);
    for (const std::string& text : warnings) log.warn("{}", text);
    if (const std::string length = length_text(config_.train); !length.empty()) log.info("{}", length);
    if (!session_.advice().empty()) log.warn("{}", session_.advice());
    const std::string mesh = plan.mesh.ranks() > 1 ? "\n" + mesh_text(config_) : "";
    print_err(fmt::format("{}{}\n{} parameters, planned memory {}{}, run folder {}\n", machine, mesh,
                          format_count(static_cast<double>(plan.parameters)), format_bytes(plan.memory.total()),
                          plan.mesh.ranks() > 1 ? " per rank" : "", config_.run.dir));
    nlohmann::ordered_json json = plan_json(config_, stages_, fit_, assembly_->target());
    json["warnings"] = warnings;
    put_run_file(*folder_, "plan.json", json_text(json, 2) + "\n");
    for (const std::string& line : kernels_) log.info("{}", line);
    setup.folder = folder_;
    setup.progress = &progress_.emplace(std::cerr, progress_options(STDERR_FILENO, config_.train.steps));
  }

  TrainState load(const TrainSetup& setup) {
    const double since = now_s();
    start_.begin(from_.kind == StartKind::anew ? "making the initial weights" : "loading the checkpoint");
    TrainState state = start_run(from_, config_, setup.model, session_, threads_, folder_);
    load_s_ += now_s() - since;
    ask_to_skip(state.loss, state.step, same_list(world_, args_.skip));
    return state;
  }

  void rehearse(TrainSetup& setup) {
    start_.begin("rehearsing the evaluation of tasks");
    tasks_->place(setup.model.executor());
    setup.evaluation_due = [this](int64_t step) { return tasks_->due(step); };
    setup.evaluate = [this](int64_t step) { return told(tasks_->after(step, [this] { return guard_.end_signal() != 0; })); };
  }

  // What was found, once rank 0 has logged and shown it.
  StepEvaluation told(LoopEvaluation found) {
    if (leads_ && !found.line.empty()) {
      for (const std::string& words : found.warnings) folder_->log().warn("{}", words);
      folder_->log().info("{}", found.line);
      progress_->say(found.line);
    }
    return {.values = std::move(found.values), .cut_off_by = found.stopped ? guard_.end_signal() : 0};
  }

  const TrainArgs& args_;
  const Config& given_;
  Config config_;
  Session& session_;
  Comm& world_;
  RunGuard& guard_;
  fault::Injector* faults_;
  StartWatch& start_ = guard_.start();
  const bool leads_ = session_.rank() == 0;
  StartPoint from_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::string> kernels_;  // what the backend says of those that were saved
  int threads_ = 1;
  std::unique_ptr<Dataset> data_;
  double load_s_ = 0;  // what reading takes of the start
  std::optional<LoopTasks> tasks_;
  std::optional<Assembly> assembly_;
  Fit fit_;
  std::vector<RankPlan> stages_;  // on rank 0, as is what follows
  RunFolder* folder_ = nullptr;
  std::optional<Progress> progress_;
};

}  // namespace

RunEnd train_rank(const TrainArgs& args, const Config& given, const Config& config, Session& session, RunGuard& guard,
                  fault::Injector* faults) {
  return TrainRank(args, given, config, session, guard, faults).run();
}

}  // namespace hlat
