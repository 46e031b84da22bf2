#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "base/format.h"
#include "eval/sample_text.h"
#include "optim/learning_rate.h"

namespace hlat {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_between(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double>(b - a).count(); }

// To multiples of 2^-32, whose sums are exact in any order: the floor is then the same in every layout.
double on_grid(double nats) { return std::nearbyint(nats * 0x1p32) * 0x1p-32; }

// Means over the run, built step by step.
class Tally {
 public:
  explicit Tally(int64_t steps) : last_(std::min<int64_t>(steps, std::max<int64_t>(1, std::min<int64_t>(20, steps / 20)))), steps_(steps) {}

  void add(const StepMetrics& m, int64_t tokens) {
    if (m.step > steps_ - last_) loss_ += m.loss;
    if (m.step > 1 || steps_ == 1) seconds_ += m.step_s, tokens_ += tokens, data_wait_s_ += m.data_wait_s;
  }
  void finish(TrainSummary& s, const TrainPlan& plan, int64_t tokens_per_step) const {
    s.steps = steps_;
    s.loss = loss_ / static_cast<double>(last_);
    s.loss_steps = last_;
    s.data_wait_s = data_wait_s_;
    s.tokens_per_s = static_cast<double>(tokens_) / seconds_;
    s.mfu = s.tokens_per_s * plan.model_flops_per_token / plan.peak_flops;
    s.hfu = s.tokens_per_s / static_cast<double>(tokens_per_step) * plan.executed_flops_per_step / plan.peak_flops;
  }

 private:
  int64_t last_, steps_;
  double loss_ = 0, seconds_ = 0, data_wait_s_ = 0;
  int64_t tokens_ = 0;
};

// The rows of this rank's replica. Stages in the middle of a pipeline read no tokens.
Part own_lanes(const Config& config, const Mesh& mesh) { return part_of(config.train.global_batch, mesh.coord().dp, mesh.shape().dp); }

}  // namespace

void check_plan(const MemoryPlan& planned, const MemoryPlan& used) {
  for (size_t i = 0; i < kPurposes; ++i)
    HLAT_CHECK(planned.bytes[i] == used.bytes[i], "region {}: planned {} bytes, the step used {}", name_of(static_cast<Purpose>(i)),
               planned.bytes[i], used.bytes[i]);
}

namespace {

// One rank's run: what lives from the first step to the last.
class Run {
 public:
  Run(const Config& config, const TrainPlan& plan, Backend& backend, const Mesh& mesh, const Dataset& data, Recorders out)
      : config_(config),
        plan_(plan),
        mesh_(mesh),
        data_(data),
        device_(backend.device()),
        out_(out),
        planned_(device_, plan.memory),
        ops_(backend.make_ops(planned_.memory()[Purpose::temp])),
        runner_(config, precision_of(config.train.precision), mesh, planned_.memory(), *ops_, &device_),
        batch_(config.train.micro_batch, config.train.seq_len),
        tally_(config.train.steps) {
    runner_.init_weights();
    plan_.executed_flops_per_step = sum_over(mesh, plan.executed_flops_per_step);
    plan_.peak_flops = sum_over(mesh, plan.peak_flops);
    if (data.validates()) validation_.emplace(config, data, mesh);
    if (mesh.first_stage() || mesh.last_stage()) batches_ = std::make_unique<TrainBatches>(data, own_lanes(config, mesh));
  }

  void step(int64_t step) {
    const auto begin = Clock::now();
    double floor = 0;
    int64_t micro = 0;
    const auto fill = [&](int64_t first, int32_t* inputs, int32_t* targets) {
      if (out_.progress != nullptr) out_.progress->first_step(micro++, runner_.micros());
      batches_->read(first - own_lanes(config_, mesh_).begin, batch_);
      std::copy(batch_.inputs.begin(), batch_.inputs.end(), inputs);
      std::copy(batch_.targets.begin(), batch_.targets.end(), targets);
      floor += on_grid(batches_->entropy().value_or(std::numeric_limits<double>::quiet_NaN()));
    };
    const int64_t end = config_.optim.schedule_steps > 0 ? config_.optim.schedule_steps : config_.train.steps;
    const double lr = learning_rate(config_.optim, step, end);
    const StepResult r = runner_.step(step, lr, fill);
    StepMetrics m = metrics(step, lr, r, seconds_between(begin, Clock::now()));
    m.floor = sum_over(mesh_.along(Axis::dp), floor) / static_cast<double>(runner_.micros() * mesh_.shape().dp);
    const bool look = looks(step);
    if (look) {
      const ValidationResult v = validated_ = validation_->run(runner_);
      m.val_loss = v.loss, m.val_ppl = v.perplexity, m.val_bpb = v.bits_per_byte;
    }
    record(m, r.checked);
    tally_.add(m, tokens_per_step());
    if (step == 1 || look) check_plan(plan_.memory, planned_.memory().high_water());
    if (step == 1) after_first();
  }

  TrainSummary finish() {
    if (out_.progress != nullptr) out_.progress->finish();
    TrainSummary summary;
    tally_.finish(summary, plan_, tokens_per_step());
    summary.validation = validated_;
    summary.floor = data_.floor().value_or(std::numeric_limits<double>::quiet_NaN());
    if (batches_) summary.ledger = batches_->ledger([&](double v) { return sum_over(mesh_.along(Axis::dp), v); });
    summary.planned = plan_.memory;
    summary.used = planned_.memory().high_water();
    if (out_.folder != nullptr && mesh_.shape().tp == 1 && mesh_.shape().pp == 1)
      summary.samples = sample_texts(runner_, config_, data_.tokenizer(), data_.special().eos, config_.run.sample_lines);
    return summary;
  }

 private:
  int64_t tokens_per_step() const { return config_.train.global_batch * config_.train.seq_len; }
  bool looks(int64_t step) const {
    const int64_t every = config_.data.validate_every;
    return validation_ && (step == config_.train.steps || (every > 0 && step % every == 0));
  }

  StepMetrics metrics(int64_t step, double lr, const StepResult& r, double step_s) const {
    const double rate = static_cast<double>(tokens_per_step()) / step_s;
    return {.step = step,
            .tokens = step * tokens_per_step(),
            .loss = r.loss,
            .grad_norm = r.grad_norm,
            .param_norm = r.param_norm,
            .lr = lr,
            .step_s = step_s,
            .tokens_per_s = rate,
            .mfu = rate * plan_.model_flops_per_token / plan_.peak_flops,
            .hfu = plan_.executed_flops_per_step / step_s / plan_.peak_flops,
            .data_wait_s = r.data_wait_s,
            .comm_s = r.comm_s,
            .comm_wait_s = r.comm_wait_s};
  }

  void record(const StepMetrics& m, bool checked) {
    if (out_.folder != nullptr) out_.folder->record(m);
    // The sums over the mesh since the check end only when all ranks have passed it.
    if (out_.folder != nullptr && checked)
      out_.folder->log().info("step {}: the replicas on {} ranks hold equal weights and gradients", m.step, mesh_.shape().ranks());
    if (out_.progress != nullptr) out_.progress->step(m);
  }

  void after_first() {
    HLAT_CHECK(plan_.host_bytes == mesh_.host_bytes(), "host memory for communication: planned {} bytes, used {}", plan_.host_bytes,
               mesh_.host_bytes());
    if (out_.folder == nullptr) return;
    out_.folder->log().info("step 1: memory used equals the plan, {}", format_bytes(plan_.memory.total()));
    // What a device holds beside the plan is told, not planned: its context, handles and code of libraries.
    const size_t in_use = device_.memory_in_use(), planned = plan_.memory.total();
    if (in_use > planned)
      out_.folder->log().info("outside the plan {} of the device are in use: context and libraries, and other processes",
                              format_bytes(in_use - planned));
  }

  const Config& config_;
  TrainPlan plan_;  // of all ranks, but for the memory
  const Mesh& mesh_;
  const Dataset& data_;
  Device& device_;
  Recorders out_;
  PlannedMemory planned_;
  std::unique_ptr<Ops> ops_;
  StepRunner runner_;
  std::optional<Validation> validation_;
  std::unique_ptr<TrainBatches> batches_;
  Batch batch_;
  Tally tally_;
  ValidationResult validated_;  // the latest
};

}  // namespace

TrainSummary train(const Config& config, const TrainPlan& plan, Backend& backend, const Mesh& mesh, const Dataset& data, Recorders out,
                   int64_t& step) {
  const auto start = Clock::now();
  Run run(config, plan, backend, mesh, data, out);
  for (step = 1; step <= config.train.steps; ++step) run.step(step);
  TrainSummary summary = run.finish();
  summary.seconds = seconds_between(start, Clock::now());
  return summary;
}

}  // namespace hlat
