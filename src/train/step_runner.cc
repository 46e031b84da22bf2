#include "train/step_runner.h"

#include <chrono>
#include <cmath>
#include <numeric>

namespace hlat {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

StepRunner::StepRunner(const Config& config, const Precision& precision, Memory& memory, Ops& ops, Device* device)
    : config_(config),
      memory_(memory),
      ops_(ops),
      device_(device),
      model_(config.model, config.train, config.optim.decay_norms),
      params_(model_.specs(), precision, memory),
      tape_(memory, config.train.recompute, config.model.layers),
      optimizer_{config.optim, config.run.seed} {
  const int64_t tokens = config.train.micro_batch * config.train.seq_len;
  const DType stat = precision.compute == DType::f64 ? DType::f64 : DType::f32;
  Region& io = memory[Purpose::io];
  rope_ = memory[Purpose::weight].alloc(stat, {config.train.seq_len, config.model.head_dim()}, "rope table");
  ids_ = io.alloc(DType::i32, {tokens}, "token ids");
  targets_ = io.alloc(DType::i32, {tokens}, "targets");
  loss_sum_ = io.alloc(DType::f64, {1}, "loss");
  scalars_.grad_sq = io.alloc(DType::f64, {params_.size()}, "gradient norms");
  scalars_.weight_sq = io.alloc(DType::f64, {params_.size()}, "parameter norms");
  scalars_.scale = io.alloc(stat, {1}, "clipping factor");
  ops.rope_table(rope_, config.model.rope_theta);
  if (device_ != nullptr) {
    host_ids_.resize(static_cast<size_t>(tokens));
    host_targets_.resize(static_cast<size_t>(tokens));
  }
}

void StepRunner::init_weights() { params_.init(ops_, config_.run.seed); }

Ctx StepRunner::context(bool accumulate, int64_t seq) {
  const AttentionShape shape{.batch = config_.train.micro_batch,
                             .seq = seq,
                             .heads = config_.model.heads,
                             .kv_heads = config_.model.kv(),
                             .head_dim = config_.model.head_dim()};
  return Ctx{.ops = ops_,
             .memory = memory_,
             .params = params_,
             .tape = tape_,
             .attention = shape,
             .rope = rope_.rows(0, seq),
             .norm_eps = config_.model.norm_eps,
             .accumulate = accumulate};
}

void StepRunner::micro_step(Tensor ids, Tensor targets, bool accumulate) {
  Ctx ctx = context(accumulate, config_.train.seq_len);
  const Scope saved(memory_[Purpose::saved]), temp(memory_[Purpose::temp]);
  const Tensor x = ctx.temp({ctx.tokens(), config_.model.hidden}, "residual stream");
  const double tokens_per_step = static_cast<double>(config_.train.global_batch * config_.train.seq_len);
  model_.forward(ctx, ids, x);
  model_.head().loss_and_gradient(ctx, x, targets, loss_sum_, 1.0 / tokens_per_step);
  model_.backward(ctx, ids, x);
}

StepResult StepRunner::step(int64_t step, double lr, const FillBatch& fill) {
  StepResult result;
  ops_.fill(loss_sum_, 0);
  for (int64_t micro = 0; micro < micros(); ++micro) {
    if (device_ != nullptr) {
      const auto start = std::chrono::steady_clock::now();
      fill(micro, host_ids_.data(), host_targets_.data());
      result.data_wait_s += seconds_since(start);
      device_->upload(ids_, host_ids_.data());
      device_->upload(targets_, host_targets_.data());
    }
    micro_step(ids_, targets_, micro > 0);
  }
  optimizer_.measure(ops_, params_, scalars_);
  std::vector<double> grad_sq(static_cast<size_t>(params_.size())), weight_sq(grad_sq.size());
  if (device_ != nullptr) {
    device_->download(&result.loss, loss_sum_);
    device_->download(grad_sq.data(), scalars_.grad_sq);
    result.loss /= static_cast<double>(config_.train.global_batch * config_.train.seq_len);
    check_finite(step, result.loss, grad_sq);
  }
  optimizer_.update(ops_, params_, scalars_, lr, step);
  if (device_ != nullptr) device_->download(weight_sq.data(), scalars_.weight_sq);
  result.grad_norm = std::sqrt(std::accumulate(grad_sq.begin(), grad_sq.end(), 0.0));
  result.param_norm = std::sqrt(std::accumulate(weight_sq.begin(), weight_sq.end(), 0.0));
  return result;
}

void StepRunner::check_finite(int64_t step, double loss, const std::vector<double>& grad_sq) const {
  std::string bad;
  int64_t count = 0;
  for (size_t i = 0; i < grad_sq.size(); ++i) {
    if (std::isfinite(grad_sq[i])) continue;
    if (count++ < 5) bad += (bad.empty() ? "" : ", ") + params_.spec(static_cast<ParamId>(i)).name;
  }
  if (std::isfinite(loss) && count == 0) return;
  if (count > 5) bad += fmt::format(" and {} more", count - 5);
  fail("step {}: {} ({}); the weights are those of step {}", step,
       std::isfinite(loss) ? "a gradient is not finite" : fmt::format("the loss is {}", loss),
       bad.empty() ? "all gradients are finite" : "not finite: gradient of " + bad, step - 1);
}

std::vector<float> StepRunner::next_logits(const std::vector<int32_t>& ids, int64_t seq, int64_t length) {
  const int64_t rows = config_.train.micro_batch, vocab = config_.model.vocab;
  HLAT_CHECK(
      device_ != nullptr && 1 <= length && length <= seq && seq <= config_.train.seq_len && static_cast<int64_t>(ids.size()) == rows * seq,
      "length {}, seq {}, {} ids for {} rows", length, seq, ids.size(), rows);
  Ctx ctx = context(false, seq);
  const Tensor device_ids = ids_.rows(0, rows * seq);
  device_->upload(device_ids, ids.data());
  const Scope saved(memory_[Purpose::saved]), temp(memory_[Purpose::temp]);
  const Tensor x = ctx.temp({ctx.tokens(), config_.model.hidden}, "residual stream");
  model_.forward(ctx, device_ids, x);
  std::vector<float> host(static_cast<size_t>(rows * vocab));
  for (int64_t r = 0; r < rows; ++r) {
    const Scope scope(ctx.temp());
    const Tensor logits = ctx.temp({1, vocab}, "logits"), wide = ctx.temp().alloc(DType::f32, {1, vocab}, "logits in f32");
    const int64_t row = r * seq + length - 1;
    model_.head().logits(ctx, x.rows(row, row + 1), logits);
    ops_.cast(wide, logits);
    device_->download(host.data() + r * vocab, wide);
  }
  return host;
}

}  // namespace hlat
