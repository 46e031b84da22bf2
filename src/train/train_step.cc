#include "train/train_step.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/failure_word.h"
#include "data/kept_rows.h"

namespace hlat {

namespace {

int64_t micros_of(const Config& c, const Mesh& mesh) {
  const int64_t rows = c.train.micro_batch * mesh.shape().dp;
  HLAT_CHECK(c.train.global_batch % rows == 0, "global batch {} in micro-batches of {} x {}", c.train.global_batch, c.train.micro_batch,
             mesh.shape().dp);
  return c.train.global_batch / rows;
}

}  // namespace

TrainStep::TrainStep(Executor& executor)
    : executor_(executor),
      config_(executor.config()),
      mesh_(executor.mesh()),
      params_(executor.params()),
      ops_(executor.ops()),
      device_(executor.device()),
      micros_(micros_of(config_, mesh_)),
      loss_scale_(1.0 / static_cast<double>(config_.train.global_batch * config_.train.seq_len)),
      schedule_(make_schedule(mesh_.coord().pp, mesh_.shape().pp, static_cast<int>(micros_), static_cast<int>(config_.parallel.chunks))),
      optimizer_(config_.optim, config_.run.seed, rank_of(mesh_.coord(), mesh_.shape())),
      sync_(params_, mesh_, config_.parallel.zero1, config_.run.seed, ops_, executor.memory()[Purpose::comm]),
      shared_weights_(params_, mesh_, ops_, executor.memory()[Purpose::io]),
      health_(params_, mesh_, config_.parallel.zero1, config_.parallel.health_every, ops_, device_, executor.memory()[Purpose::io]),
      light_(mesh_, params_.precision().compute, config_.parallel.health_every, ops_, device_, executor.memory()),
      monitor_(executor),
      probe_(executor, micros_),
      batch_(config_.train.micro_batch, config_.train.seq_len) {
  light_.watch_rope(executor.rope_table(), rope_frequencies(config_.model));
  Region& io = executor.memory()[Purpose::io];
  totals_ = io.alloc(DType::f64, {kTotals}, "sums over ranks");
  const auto units = static_cast<int64_t>(params_.units().size());
  scalars_.grad_sq = io.alloc(DType::f64, {units}, "gradient norms");
  scalars_.weight_sq = io.alloc(DType::f64, {units}, "parameter norms");
  scalars_.scale = io.alloc(executor.stat(), {1}, "clipping factor");
  scalars_.step = io.alloc(DType::f64, {kAdamwStep}, "learning rate and step");
  scalars_.change = monitor_.change();
  if (scalars_.change.defined()) optimizer_.reserve_measured(ops_, params_, executor.memory()[Purpose::temp]);
}

void TrainStep::now(FlightAction action, int micro, int chunk) {
  if (flight_ != nullptr) flight_->action(action, micro, chunk);
  if (trace_ != nullptr) trace_->action({.kind = static_cast<uint8_t>(action), .micro = micro, .chunk = chunk});
}

void TrainStep::load(const Action& a, BatchSource* source, StepResult& result) {
  const Llama::Chunk& chunk = executor_.chunks()[static_cast<size_t>(a.chunk)];
  if (!chunk.first && !chunk.last) return;
  now(FlightAction::load, a.micro, a.chunk);
  if (source != nullptr) {
    const auto start = std::chrono::steady_clock::now();
    source->read(a.micro * batch_.rows, batch_);
    if (faults_ != nullptr && !calibrating_) faults_->rows(a.micro, batch_.seq_len, batch_.inputs, batch_.targets);
    result.data_wait_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (watched_ > 0) monitor_.loaded(watched_, a.micro * batch_.rows, batch_, *source);
  }
  executor_.load(a, batch_.inputs.data(), batch_.targets.data());
}

// Micro-batches of a chunk come in order, so the first one begins its gradients and the last one completes them.
GradientSums TrainStep::sums_of(const Action& a) {
  GradientSums sums{.accumulate = a.micro > 0};
  if (a.micro + 1 == micros_ && !calibrating_) sums.group_done = [this](int group) { sync_.group_done(group); };
  return sums;
}

void TrainStep::forward_backward(const Action& a) {
  now(a.kind == ActionKind::backward ? FlightAction::backward : FlightAction::forward, a.micro, a.chunk);
  if (a.kind == ActionKind::backward) return executor_.backward(a, sums_of(a));
  executor_.forward(a);
  if (executor_.chunks()[static_cast<size_t>(a.chunk)].last) executor_.loss_and_gradient(a, sums_of(a), loss_scale_);
}

Tensor TrainStep::total(size_t index) const { return totals_.rows(static_cast<int64_t>(index), static_cast<int64_t>(index) + 1); }

// The same bits on all ranks of the mesh: where the groups of an axis may differ in theirs, rank 0's go to everybody.
void TrainStep::sum_over_ranks(Tensor t, bool over_tp, bool over_dp) {
  if (over_tp) mesh_.along(Axis::tp).all_reduce(t);
  if (over_dp) mesh_.along(Axis::dp).all_reduce(t);
  mesh_.along(Axis::pp).all_reduce(t);
  if (mesh_.sums_agree(Axis::tp) && mesh_.sums_agree(Axis::dp) && mesh_.sums_agree(Axis::pp)) return;
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp}) mesh_.along(axis).broadcast(t, 0);
}

// Only the queue's work on dp is overlapped with the computation.
TrainStep::CommTime TrainStep::comm_time() const {
  double all = 0;
  for (const auto& comm : mesh_.comms()) all += comm->traffic().seconds();
  return {all, all - sync_.queue().busy_s() + sync_.queue().waited_s()};
}

void TrainStep::run_schedule(BatchSource* source, StepResult& result) {
  for (const Action& a : schedule_.actions) {
    if (a.kind == ActionKind::forward) load(a, source, result);
    forward_backward(a);
  }
  executor_.finish_sends();
  if (!calibrating_) passes().ran = true;
}

// The first micro-batch of the step that follows begins its gradients.
void TrainStep::calibrate(int64_t step, BatchSource* source, StepResult& result) {
  Fp8Calibration calibration(executor_, step);
  executor_.set_step(step);
  calibrating_ = true;
  watched_ = 0;
  do {
    calibration.begin_pass();
    run_schedule(source, result);
  } while (!calibration.end_pass());
  calibrating_ = false;
  result.calibrated = calibration.result();
}

// The micro-batches of a run with one rank as graphs of the device, recorded after a first step of their kind, in which ops may still
// choose their kernels. False: nothing was done, because the device records nothing, has no memory for that, or every op is timed.
bool TrainStep::run_graphs(BatchSource* source, StepResult& result) {
  const bool single = mesh_.shape().ranks() == 1 && executor_.chunks().size() == 1;
  if (faults_ != nullptr && faults_->in_passes()) return false;  // what they compute on the host cannot be recorded
  // A recording has the step's number, which keys noise, in it for good.
  if (!config_.device.graphs || !single || !passes().ran || ops_.timing() || params_.precision().noisy_passes()) return false;
  const auto graph_of = [&](int micro) -> std::unique_ptr<Recording>& { return passes().graphs[micro > 0 ? 1 : 0]; };
  // All of them before the first runs: when there is no memory for one, nothing has been done yet.
  const auto micros = static_cast<int>(micros_);
  for (int micro = 0; micro < std::min(micros, 2); ++micro) {
    if (graph_of(micro) != nullptr) continue;
    if (!records_) return false;
    graph_of(micro) = device_.record([this, a = Action{.kind = ActionKind::forward, .micro = micro}] {
      const GradientSums sums{.accumulate = a.micro > 0};
      executor_.forward(a);
      executor_.loss_and_gradient(a, sums, loss_scale_);
      executor_.backward(a, sums);
    });
    if (graph_of(micro) != nullptr) continue;
    records_ = false;
    graph_of(0).reset();  // of no use alone
    return false;
  }
  for (int micro = 0; micro < micros; ++micro) {
    const Action a{.kind = ActionKind::forward, .micro = micro};
    load(a, source, result);
    now(FlightAction::forward, a.micro);
    graph_of(micro)->run();
  }
  sync_.all_done();
  return true;
}

StepResult TrainStep::run(int64_t step, double lr, BatchSource* source, bool check) {
  HLAT_CHECK(source == nullptr || executor_.reads_batches(), "a source of batches on a rank that reads none");
  StepResult result;
  std::optional<KeptRows> kept;
  if (executor_.fp8().uncalibrated()) {
    if (source != nullptr) source = &kept.emplace(*source);
    calibrate(step, source, result);
  }
  const CommTime before = comm_time();
  begin(step, lr, check, result);
  compute_gradients(step, source, result);
  clip_gradients();
  if (pass_gate(step, result))
    apply_update(step, lr, result);
  else
    leave_update_out(step, result);
  if (result.checked) now(FlightAction::compare);
  if (result.checked) health_.check_weights(step);
  if (check && light_.due(step)) light_.check(step);
  const CommTime after = comm_time();
  result.comm_s = after.all - before.all;
  result.comm_wait_s = after.waited - before.waited;
  return result;
}

void TrainStep::begin(int64_t step, double lr, bool check, StepResult& result) {
  ops_.fill(executor_.loss_sum(), 0);
  optimizer_.begin_step(device_, scalars_, lr, step);
  if (faults_ != nullptr) faults_->optimizer(scalars_.step);
  result.checked = check && health_.due(step);
  sync_.begin_step(step, result.checked ? &health_ : nullptr);
  executor_.set_step(step);
  executor_.fp8().begin_step();
  watched_ = check && monitor_.due(step) ? step : 0;
  if (watched_ > 0) monitor_.begin();
}

// All passes, and the sums over ranks.
void TrainStep::compute_gradients(int64_t step, BatchSource* source, StepResult& result) {
  if (!run_graphs(source, result)) run_schedule(source, result);
  if (watched_ > 0) monitor_.end_passes();
  executor_.set_step(0);
  now(FlightAction::reduce);
  sync_.finish();
  if (result.checked) now(FlightAction::compare);
  if (result.checked) health_.check_gradients(step);
}

void TrainStep::clip_gradients() {
  now(FlightAction::norms);
  optimizer_.measure(ops_, params_, scalars_, total(kGradSq));
  sum_over_ranks(total(kGradSq), true, config_.parallel.zero1);
  optimizer_.clip(ops_, scalars_, total(kGradSq));
}

void TrainStep::apply_update(int64_t step, double lr, StepResult& result) {
  now(FlightAction::update);
  update(step);
  if (faults_ != nullptr) faults_->weights();
  if (!gate_) sum_loss();
  sum_over_ranks(total(kWeightSq), true, config_.parallel.zero1);
  now(FlightAction::read_back);
  read_totals(step, result);
  monitor_.count_fp8(true);
  if (watched_ > 0) result.monitors = monitor_.finish(scalars_, lr, step);
}

void TrainStep::leave_update_out(int64_t step, StepResult& result) {
  monitor_.count_fp8(false);
  if (watched_ > 0) result.monitors = monitor_.finish_skipped();
  if (!only_measures_ && std::isfinite(result.loss) && std::isfinite(result.grad_norm)) executor_.fp8().take_in(step);
}

// Losses are equal on all tp ranks of the last stage and zero on other stages.
void TrainStep::sum_loss() {
  ops_.cast(total(kLoss), executor_.loss_sum());
  if (faults_ != nullptr) faults_->loss(total(kLoss));
  sum_over_ranks(total(kLoss), false, true);
}

// Whether the update is done.
bool TrainStep::pass_gate(int64_t step, StepResult& result) {
  if (!gate_) return true;
  static_assert(kGradSq == 0 && kLoss == 1);
  sum_loss();
  now(FlightAction::read_back);
  std::array<double, 2> t{};
  device_.download(t.data(), totals_.rows(0, 2));
  mesh_.check();
  result.loss = t[kLoss] / static_cast<double>(config_.train.global_batch * config_.train.seq_len);
  result.grad_norm = std::sqrt(t[kGradSq]);
  result.skipped = !gate_(step, result.loss, result.grad_norm);
  if (!result.skipped) check_finite(step, result.loss, t[kGradSq], false);
  return !result.skipped;
}

void TrainStep::pass_over(BatchSource* source) {
  now(FlightAction::load);
  for (int64_t micro = 0; source != nullptr && micro < micros_; ++micro) source->read(micro * batch_.rows, batch_);
}

void TrainStep::check_state(int64_t step) {
  now(FlightAction::compare);
  health_.check_state(step);
}

// The only point of a step where the host waits for the device, but for groups that copy through the host and for a gate.
void TrainStep::read_totals(int64_t step, StepResult& result) const {
  std::array<double, kTotals> t{};
  device_.download(t.data(), totals_);
  mesh_.check();
  result.loss = t[kLoss] / static_cast<double>(config_.train.global_batch * config_.train.seq_len);
  result.grad_norm = std::sqrt(t[kGradSq]);
  result.param_norm = std::sqrt(t[kWeightSq]);
  check_finite(step, result.loss, t[kGradSq], true);
}

// Bucket by bucket, so that the all-gather of one is overlapped with the update of the next.
void TrainStep::update(int64_t step) {
  executor_.fp8().set_scales(scalars_.scale, step);
  for (int b = 0; b < static_cast<int>(params_.buckets().size()); ++b) {
    if (before_update_) before_update_(b);
    optimizer_.update(ops_, params_, scalars_, b, watched_ > 0);
    sync_.gather(b);
  }
  ops_.sum(total(kWeightSq), scalars_.weight_sq.rows(0, params_.counted_units()));
  sync_.finish_gathers();
  shared_weights_.hand_out();
  executor_.fp8().transpose();
}

// Gradients that are not finite have changed no weight: the clipping factor was NaN.
void TrainStep::check_finite(int64_t step, double loss, double grad_sq, bool updated) const {
  if (std::isfinite(loss) && std::isfinite(grad_sq)) return;
  const auto& units = params_.units();
  std::vector<double> sq(units.size());
  device_.download(sq.data(), scalars_.grad_sq);
  std::vector<std::string> names;
  for (size_t i = 0; i < sq.size(); ++i) {
    const std::string& name = params_.spec(units[i].param).name;
    if (!std::isfinite(sq[i]) && (names.empty() || names.back() != name)) names.push_back(name);
  }
  std::string bad;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 5); ++i) bad += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > 5) bad += fmt::format(" and {} more", names.size() - 5);
  const bool elsewhere = names.empty() && !std::isfinite(grad_sq);
  // Finite gradients have made a finite clipping factor, and the update was done.
  const int64_t weights_of = updated && std::isfinite(grad_sq) ? step : step - 1;
  const std::string text = fmt::format("at step {} {} ({}); the weights are those of step {}", step,
                                       std::isfinite(loss) ? "a gradient is not finite" : fmt::format("the loss is {}", loss),
                                       !names.empty() ? "gradient of " + bad
                                       : elsewhere    ? "the gradients of this rank are finite, those of another are not"
                                                      : "all gradients are finite",
                                       weights_of);
  throw FailedStep(FailureKind::non_finite, step, text, loss, std::sqrt(grad_sq));
}

}  // namespace hlat
