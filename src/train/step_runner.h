// One rank's model, optimizer and step. Training, benchmarks and the dry run all use this class: with a null backend,
// null comms and measuring memory the same code yields the memory plan, the cost and the traffic.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "config/config.h"
#include "health/health.h"
#include "model/llama.h"
#include "model/pipeline_links.h"
#include "ops/device.h"
#include "optim/adamw.h"
#include "parallel/pipeline_schedule.h"
#include "train/grad_sync.h"

namespace hlat {

struct StepResult {
  double loss = 0;        // mean over the tokens of the step, on all ranks
  double grad_norm = 0;   // before clipping
  double param_norm = 0;  // after the update
  double data_wait_s = 0;
  double comm_s = 0;       // time of all communication of this rank
  double comm_wait_s = 0;  // the part of it that computation waited for
  bool checked = false;    // this rank and its peers compared what they hold, and it was equal
};

// Fills inputs and targets, (micro_batch, T) each, with the next row of lanes [first, first + micro_batch) of the global batch.
using FillBatch = std::function<void(int64_t first, int32_t* inputs, int32_t* targets)>;

class StepRunner {
 public:
  // device is null in a dry run: nothing is copied. mesh, memory, ops and device must outlive this.
  StepRunner(const Config& config, const Precision& precision, const Mesh& mesh, Memory& memory, Ops& ops, Device* device);

  void init_weights();
  StepResult step(int64_t step, double lr, const FillBatch& fill);

  // Mean loss over `rows` rows that nothing is learned from. Collective; replicas share the rows as they share a batch, and `fill`
  // gives those of [first, first + micro_batch). rows must be a multiple of the replicas' micro-batches.
  double evaluate(int64_t rows, const FillBatch& fill);

  // Logits (B, V) that follow the first `length` tokens of each of the micro-batch's rows, for generation.
  // ids is (B, seq) with seq at most the training length; shorter rows cost less. Not with tp or pp.
  std::vector<float> next_logits(const std::vector<int32_t>& ids, int64_t seq, int64_t length);

  int64_t micros() const { return micros_; }
  const Mesh& mesh() const { return mesh_; }
  const ParamStore& params() const { return params_; }
  const GradSync& sync() const { return sync_; }
  Tensor loss_sum() const { return loss_sum_; }

  // One micro-batch forward and backward on device tensors, for a pipeline of one stage: the part of step() before the optimizer.
  void micro_step(Tensor ids, Tensor targets, bool accumulate);

 private:
  // A micro-batch in flight, and on the last stage its output, which becomes the gradient.
  struct Flight {
    MicroState state;
    Tensor out;  // (rows, D)
  };
  enum Total : size_t { kGradSq, kLoss, kWeightSq, kTotals };
  struct CommTime {
    double all = 0, waited = 0;
  };
  Flight& flight(int chunk, int slot);
  Ctx context(bool accumulate, int64_t seq);
  Ctx context(const Action& a);
  void run_forward(const Action& a, const FillBatch& fill, StepResult& result);
  void run_backward(const Action& a);
  void load(const Action& a, const MicroState& s, const FillBatch& fill, StepResult& result);
  void run_schedule(const FillBatch& fill, StepResult& result);
  bool replay(const FillBatch& fill, StepResult& result);
  void update();
  CommTime comm_time() const;
  Tensor total(size_t index) const;
  void sum_over_ranks(Tensor t, bool over_tp, bool over_dp);
  void read_totals(int64_t step, StepResult& result) const;
  void check_finite(int64_t step, double loss, double grad_sq) const;

  Config config_;
  const Mesh& mesh_;
  Memory& memory_;
  Ops& ops_;
  Device* device_;
  int64_t micros_;
  Schedule schedule_;
  Llama model_;
  ParamStore params_;
  Tape tape_;
  AdamW optimizer_;
  GradSync sync_;
  Health health_;
  PipelineLinks links_;
  std::map<std::pair<int, int>, Flight> flights_;         // by chunk and slot
  bool ran_ = false;                                      // a whole schedule, op by op
  std::array<std::unique_ptr<Recording>, 2> recordings_;  // of a micro-batch: the first of a step, and one that adds to its gradients
  Tensor rope_;                                           // (T, E)
  Tensor loss_sum_;                                       // (1) f64
  Tensor totals_;                                         // (3) f64: squared gradient norm, loss, squared weight norm
  OptimScalars scalars_;
  std::vector<int32_t> host_ids_, host_targets_;
};

}  // namespace hlat
