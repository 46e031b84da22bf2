// What of a model a policy with FP8 products computes in FP8: the linear layers of blocks whose dimensions are multiples of kFp8Grain.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "model/rank_plan.h"

namespace hlat {

struct Fp8Plan {
  int64_t parameters = 0;               // of the whole model, in FP8; 0 without such products
  std::vector<std::string> wide_names;  // linear layers of a block that stay in the type of activations, with their dimensions
};

Fp8Plan fp8_plan(const Config& config);
// A line, with the memory of what this rank keeps for the backward; empty without FP8 products.
std::string fp8_text(const Config& config, const RankPlan& plan);

}  // namespace hlat
