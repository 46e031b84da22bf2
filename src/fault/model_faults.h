// Faults of the model and its arithmetic, as bugs of a program are: they last, from their step on for good or for steps= steps, and most of
// them leave the loss curve as it is. hlat check --model finds each of them before a run (docs/check.md).
//
//   leak             the mask of the first block lets each query see the key after its own (leaky_attention.h)
//   logits           what the output layer gets is multiplied, and the gradient of that
//   recompute        norms of the first block have another epsilon when a backward computes the block again
//   repeat           every second row of a rank's batch is the one before it
//   rope             the table is made with another base
//   scale_grad       gradients are multiplied, before any sum over dp
//   drop_share       a bucket is zero when it goes into the sum over dp
//   bias_correction  both corrections of an AdamwStep are 1
#pragma once

#include <cstdint>
#include <vector>

#include "config/config.h"
#include "config/fault_spec.h"
#include "fault/leaky_attention.h"
#include "ops/device.h"
#include "param/param_store.h"

namespace hlat::fault {

bool is_of_model(FaultKind kind);
bool meets_all_ranks(FaultKind kind);  // no rank= tells whom it meets

class ModelFaults final : public PlantedPasses {
 public:
  explicit ModelFaults(const Config& config) : model_(config.model) {}
  // Before the first fault begins; both must outlive this.
  void place(const ParamStore& params, Device& device) {
    params_ = &params, device_ = &device;
    attention_.place(device);
  }
  void place_rope(Tensor table /*(T, E)*/) { rope_ = table; }

  void begin(const FaultSpec& spec, int64_t step);
  void at_step(int64_t step);  // those whose steps are over end

  // At the points of a step of which Injector tells.
  void rows(int64_t micro, int64_t seq_len, std::vector<int32_t>& inputs, std::vector<int32_t>& targets);
  void optimizer(Tensor step) const;
  void gradients(size_t bucket) const;
  void sums(size_t bucket) const;

  // In passes.
  bool in_passes() const;
  const PlantedAttention* attention(int64_t layer) const override;
  double recomputed_eps(int64_t layer, double eps) const override;
  void scale_logits(Tensor x) const override;

 private:
  struct Lasting {
    FaultSpec spec;
    int64_t end = 0;  // the first step without it; 0: for good
  };
  const FaultSpec* find(FaultKind kind) const;  // null: it is not under way
  void spoil_rope(double factor) const;
  void repeat_rows(int64_t first, int64_t seq_len, std::vector<int32_t>& inputs, std::vector<int32_t>& targets);

  ModelConfig model_;
  const ParamStore* params_ = nullptr;
  Device* device_ = nullptr;
  Tensor rope_;
  LeakyAttention attention_;
  std::vector<Lasting> lasting_;
  std::vector<int32_t> last_inputs_, last_targets_;  // the latest row that was not a repetition
};

}  // namespace hlat::fault
