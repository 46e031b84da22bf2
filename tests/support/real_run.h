// A StepRunner on memory sized by its own dry run, for tests of the real step.
#pragma once

#include <vector>

#include "plan/dry_run.h"
#include "support/one_rank.h"
#include "support/test_device.h"
#include "train/step_runner.h"

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

// Deterministic tokens in [0, vocab) for the micro-batch of a step that starts with lane `first`.
inline void random_batch(const Config& c, int64_t step, int64_t first, int32_t* inputs, int32_t* targets) {
  const int64_t n = c.train.micro_batch * c.train.seq_len;
  RandomStream s({.seed = 5, .stream = hash_name("batch"), .purpose = Noise::data, .step = static_cast<uint32_t>(step * 1000 + first)});
  for (int64_t i = 0; i < n; ++i) {
    inputs[i] = static_cast<int32_t>(s.below(static_cast<uint64_t>(c.model.vocab)));
    targets[i] = static_cast<int32_t>(s.below(static_cast<uint64_t>(c.model.vocab)));
  }
}

class RealRun {
 public:
  explicit RealRun(const Config& config, const TestDevice& on = cpu_device())
      : config_(with_one_rank(config)),
        backend_(on.make()),
        plan_(dry_run(config_, scratch_model().get())),
        mesh_(one_rank(config_)),
        memory_(backend_->device(), plan_.memory),
        ops_(backend_->make_ops(memory_.memory()[Purpose::temp])),
        runner_(config_, precision_of(config.train.precision), mesh_, memory_.memory(), *ops_, &backend_->device()) {
    runner_.init_weights();
  }

  StepResult step(int64_t step) {
    return runner_.step(step, config_.optim.lr,
                        [&](int64_t first, int32_t* in, int32_t* out) { random_batch(config_, step, first, in, out); });
  }
  StepRunner& runner() { return runner_; }
  Device& device() { return backend_->device(); }
  const Plan& plan() const { return plan_; }
  MemoryPlan used() { return memory_.memory().high_water(); }

  // The bytes of all weights or gradients, one after the other.
  std::vector<std::byte> weight_bytes() const {
    return bytes([](const ParamStore& p, ParamId id) { return p.weight(id); });
  }
  std::vector<std::byte> grad_bytes() const {
    return bytes([](const ParamStore& p, ParamId id) { return p.grad(id); });
  }

 private:
  std::unique_ptr<Ops> scratch_model() { return backend_->make_ops(measuring_); }
  template <class Get>
  std::vector<std::byte> bytes(const Get& get) const {
    std::vector<std::byte> all;
    for (ParamId id = 0; id < runner_.params().size(); ++id) {
      const Tensor t = get(runner_.params(), id);
      const size_t begin = all.size();
      all.resize(begin + t.bytes());
      backend_->device().download(all.data() + begin, t);
    }
    return all;
  }

  Config config_;
  std::unique_ptr<Backend> backend_;
  Region measuring_;
  Plan plan_;
  Mesh mesh_;
  PlannedMemory memory_;
  std::unique_ptr<Ops> ops_;
  StepRunner runner_;
};

}  // namespace hlat
