// A training step of one rank on memory sized by its own dry run, for tests of the real step.
#pragma once

#include <vector>

#include "comm/self_comm.h"
#include "runtime/assembly.h"
#include "support/one_rank.h"
#include "support/test_device.h"
#include "train/train_step.h"

namespace hlat {

inline Config tiny_config() {
  Config c;
  c.model = {.preset = {}, .layers = 3, .hidden = 48, .heads = 6, .kv_heads = 2, .ffn = 80, .vocab = 101};
  c.model.init_std = 0.1;  // large enough for every path to matter
  c.train.seq_len = 37;    // neither a tile nor a vector multiple
  c.train.global_batch = 4;
  c.train.micro_batch = 2;
  c.train.loss_chunk = 50;  // the chunks of a micro-batch are uneven
  c.optim.lr = 1e-3;
  c.parallel.dp = 1;
  return c;
}

// Deterministic tokens in [0, vocab) for the micro-batches of a step.
class RandomRows : public BatchSource {
 public:
  explicit RandomRows(const Config& config) : vocab_(static_cast<uint64_t>(config.model.vocab)) {}
  void read(int64_t first, Batch& b) override {
    RandomStream s({.seed = 5, .stream = hash_name("batch"), .purpose = Noise::data, .step = static_cast<uint32_t>(step * 1000 + first)});
    for (size_t i = 0; i < b.inputs.size(); ++i) {
      b.inputs[i] = static_cast<int32_t>(s.below(vocab_));
      b.targets[i] = static_cast<int32_t>(s.below(vocab_));
    }
  }
  int64_t step = 1;

 private:
  uint64_t vocab_;
};

class RealRun {
 public:
  explicit RealRun(const Config& config, const TestDevice& on = cpu_device())
      : backend_(on.make()),
        assembly_(with_one_rank(config), *backend_, world_, 1),
        model_(assembly_.build()),
        step_(model_.executor()),
        rows_(config) {
    model_.executor().init_weights();
  }

  StepResult step(int64_t number) {
    rows_.step = number;
    return step(number, rows_);
  }
  StepResult step(int64_t number, BatchSource& rows) { return step_.run(number, executor().config().optim.lr, &rows); }
  TrainStep& train() { return step_; }
  Executor& executor() { return model_.executor(); }
  Device& device() { return backend_->device(); }
  const RankPlan& plan() const { return assembly_.plan(); }
  PlacedModel& model() { return model_; }
  void check_used() { plan().check_used(model_.high_water(), model_.mesh()); }

  // The bytes of all weights or gradients, one after the other.
  std::vector<std::byte> weight_bytes() const {
    return bytes([](const ParamStore& p, ParamId id) { return p.weight(id); });
  }
  std::vector<std::byte> grad_bytes() const {
    return bytes([](const ParamStore& p, ParamId id) { return p.grad(id); });
  }

 private:
  template <class Get>
  std::vector<std::byte> bytes(const Get& get) const {
    std::vector<std::byte> all;
    for (ParamId id = 0; id < model_.executor().params().size(); ++id) {
      const Tensor t = get(model_.executor().params(), id);
      const size_t begin = all.size();
      all.resize(begin + t.bytes());
      backend_->device().download(all.data() + begin, t);
    }
    return all;
  }

  SelfComm world_;
  std::unique_ptr<Backend> backend_;
  Assembly assembly_;
  PlacedModel& model_;
  TrainStep step_;
  RandomRows rows_;
};

// Gradients of one micro-batch, and its loss in loss_sum().
inline void micro_step(Executor& executor, const std::vector<int32_t>& ids, const std::vector<int32_t>& targets, bool accumulate) {
  const TrainConfig& t = executor.config().train;
  const Action a;
  const GradientSums sums{.accumulate = accumulate};
  executor.ops().fill(executor.loss_sum(), 0);
  executor.load(a, ids.data(), targets.data());
  executor.forward(a);
  executor.loss_and_gradient(a, sums, 1.0 / static_cast<double>(t.global_batch * t.seq_len));
  executor.backward(a, sums);
}

}  // namespace hlat
