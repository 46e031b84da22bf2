// What can be told of a model before and in its first step: initial values, the first loss, RoPE's table, and that no position sees a later
// token.
#pragma once

#include "selfcheck/check_model.h"
#include "selfcheck/verdict.h"

namespace hlat {

// The standard deviation that a tensor of this name must start with; 0: all ones.
double declared_std(const ModelConfig& model, const std::string& tensor);
// Losses of the first step that initial weights can have.
struct LossRange {
  double low = 0, high = 0;
};
LossRange first_losses(const Config& config);

// All of a model whose weights are the initial ones. Collective.
ModelVerdict check_init(const SelfCheckRun& run, CheckModel& model);
ModelVerdict check_first_loss(const SelfCheckRun& run, double loss);
ModelVerdict check_rope(const SelfCheckRun& run, CheckModel& model);
ModelVerdict check_leak(const SelfCheckRun& run, CheckModel& model);

}  // namespace hlat
