#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <optional>

#include "base/format.h"
#include "optim/schedule.h"
#include "train/sample.h"

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

// The rows of this rank's replica. Stages in the middle of a pipeline read no tokens and have no loader.
std::unique_ptr<Loader> make_loader(const Config& config, const Dataset& data, const Mesh& mesh) {
  if (!mesh.first_stage() && !mesh.last_stage()) return nullptr;
  const int64_t share = config.train.global_batch / mesh.shape().dp;
  return std::make_unique<Loader>(Lanes(data.train(), config.train.global_batch, config.train.seq_len), mesh.coord().dp * share, share,
                                  data.loader_options());
}

Ledger read_ledger(const Dataset& data, const Loader* loader, const Mesh& mesh) {
  const std::vector<LaneState> states = loader == nullptr ? std::vector<LaneState>{} : loader->states();
  return ledger_of(data.train(), states, [&](double v) { return sum_over(mesh.dp(), v); });
}

}  // namespace

void check_plan(const MemoryPlan& planned, const MemoryPlan& used) {
  for (size_t i = 0; i < kPurposes; ++i)
    HLAT_CHECK(planned.bytes[i] == used.bytes[i], "region {}: planned {} bytes, the step used {}", name_of(static_cast<Purpose>(i)),
               planned.bytes[i], used.bytes[i]);
}

namespace {

// What a device holds beside the plan is told, not planned: its context, handles and code of libraries.
void log_memory(spdlog::logger& log, size_t planned, size_t in_use) {
  log.info("step 1: memory used equals the plan, {}", format_bytes(planned));
  if (in_use > planned)
    log.info("outside the plan {} of the device are in use: context and libraries, and other processes", format_bytes(in_use - planned));
}

}  // namespace

TrainSummary train(const Config& config, const TrainPlan& rank_plan, Backend& backend, const Mesh& mesh, const Dataset& data, Recorders out,
                   int64_t& step) {
  const auto start = Clock::now();
  PlannedMemory planned(backend.device(), rank_plan.memory);
  const auto ops = backend.make_ops(planned.memory()[Purpose::temp]);
  StepRunner runner(config, precision_of(config.train.precision), mesh, planned.memory(), *ops, &backend.device());
  runner.init_weights();
  TrainPlan plan = rank_plan;  // from here on of all ranks, but for the memory
  plan.executed_flops_per_step = sum_over(mesh, rank_plan.executed_flops_per_step);
  plan.peak_flops = sum_over(mesh, rank_plan.peak_flops);

  const TrainConfig& t = config.train;
  const std::optional<Validation> validation = data.validates() ? std::make_optional<Validation>(config, data, mesh) : std::nullopt;
  const std::unique_ptr<Loader> loader = make_loader(config, data, mesh);
  const int64_t tokens_per_step = t.global_batch * t.seq_len;
  const int64_t schedule_end = config.optim.schedule_steps > 0 ? config.optim.schedule_steps : t.steps;
  TrainSummary summary;
  Tally tally(t.steps);
  for (step = 1; step <= t.steps; ++step) {
    const auto begin = Clock::now();
    double floor = 0;
    int64_t micro = 0;
    const auto fill = [&](int64_t first, int32_t* inputs, int32_t* targets) {
      if (out.progress != nullptr) out.progress->first_step(micro++, runner.micros());
      floor += on_grid(loader->fill(first, t.micro_batch, inputs, targets));
    };
    const double lr = learning_rate(config.optim, step, schedule_end);
    const StepResult r = runner.step(step, lr, fill);
    const double step_s = seconds_between(begin, Clock::now());
    const double rate = static_cast<double>(tokens_per_step) / step_s;
    StepMetrics m{.step = step,
                  .tokens = step * tokens_per_step,
                  .loss = r.loss,
                  .floor = sum_over(mesh.dp(), floor) / static_cast<double>(runner.micros() * mesh.shape().dp),
                  .grad_norm = r.grad_norm,
                  .param_norm = r.param_norm,
                  .lr = lr,
                  .step_s = step_s,
                  .tokens_per_s = rate,
                  .mfu = rate * plan.model_flops_per_token / plan.peak_flops,
                  .hfu = plan.executed_flops_per_step / step_s / plan.peak_flops,
                  .data_wait_s = r.data_wait_s,
                  .comm_s = r.comm_s,
                  .comm_wait_s = r.comm_wait_s};
    const bool look = validation && (step == t.steps || (config.data.validate_every > 0 && step % config.data.validate_every == 0));
    if (look) {
      const ValidationResult v = summary.validation = validation->run(runner);
      m.val_loss = v.loss, m.val_ppl = v.perplexity, m.val_bpb = v.bits_per_byte;
    }
    if (out.folder != nullptr) out.folder->record(m);
    // The sums over the mesh since the check end only when all ranks have passed it.
    if (out.folder != nullptr && r.checked)
      out.folder->log().info("step {}: the replicas on {} ranks hold equal weights and gradients", step, mesh.shape().ranks());
    if (out.progress != nullptr) out.progress->step(m);
    tally.add(m, tokens_per_step);
    if (step == 1 || look) check_plan(plan.memory, planned.memory().high_water());
    if (step == 1) {
      HLAT_CHECK(plan.host_bytes == mesh.host_bytes(), "host memory for communication: planned {} bytes, used {}", plan.host_bytes,
                 mesh.host_bytes());
      if (out.folder != nullptr) log_memory(out.folder->log(), plan.memory.total(), backend.device().memory_in_use());
    }
  }
  if (out.progress != nullptr) out.progress->finish();
  tally.finish(summary, plan, tokens_per_step);
  summary.floor = data.floor();
  summary.ledger = read_ledger(data, loader.get(), mesh);
  summary.planned = plan.memory;
  summary.used = planned.memory().high_water();
  if (out.folder != nullptr && mesh.shape().tp == 1 && mesh.shape().pp == 1)
    summary.samples = sample_texts(runner, config, data.tokenizer(), data.marks().eos, config.run.sample_lines);
  summary.seconds = seconds_between(start, Clock::now());
  return summary;
}

}  // namespace hlat
