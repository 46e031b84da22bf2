// One rank's model, optimizer and step. Training, benchmarks and the dry run all use this class: with a null backend
// and measuring memory the same code yields the memory plan and the cost.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "config/config.h"
#include "model/llama.h"
#include "ops/device.h"
#include "optim/adamw.h"

namespace hlat {

struct StepResult {
  double loss = 0;        // mean over the tokens of the step
  double grad_norm = 0;   // before clipping
  double param_norm = 0;  // after the update
  double data_wait_s = 0;
};

// Fills inputs and targets, (micro_batch, T) each, for one micro-batch of the current step.
using FillBatch = std::function<void(int64_t micro, int32_t* inputs, int32_t* targets)>;

class StepRunner {
 public:
  // device is null in a dry run: nothing is copied.
  StepRunner(const Config& config, const Precision& precision, Memory& memory, Ops& ops, Device* device);

  void init_weights();
  StepResult step(int64_t step, double lr, const FillBatch& fill);

  // Logits (B, V) that follow the first `length` tokens of each of the micro-batch's rows, for generation.
  // ids is (B, seq) with seq at most the training length; shorter rows cost less.
  std::vector<float> next_logits(const std::vector<int32_t>& ids, int64_t seq, int64_t length);

  int64_t micros() const { return config_.train.global_batch / config_.train.micro_batch; }
  const ParamStore& params() const { return params_; }
  Tensor loss_sum() const { return loss_sum_; }

  // One micro-batch forward and backward on device tensors: the part of step() before the optimizer.
  void micro_step(Tensor ids, Tensor targets, bool accumulate);

 private:
  Ctx context(bool accumulate, int64_t seq);
  void check_finite(int64_t step, double loss, const std::vector<double>& grad_sq) const;

  Config config_;
  Memory& memory_;
  Ops& ops_;
  Device* device_;
  Llama model_;
  ParamStore params_;
  Tape tape_;
  AdamW optimizer_;
  Tensor rope_;           // (T, E)
  Tensor ids_, targets_;  // (N) i32
  Tensor loss_sum_;       // (1) f64
  OptimScalars scalars_;
  std::vector<int32_t> host_ids_, host_targets_;
};

}  // namespace hlat
