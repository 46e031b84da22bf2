// The first step of the shrunk model on a mesh of one rank, without planted faults: rank 0 computes the gradient of every replica's rows
// alone and hands it round.
#pragma once

#include <map>

#include "selfcheck/check_model.h"

namespace hlat {

using OneRankGradients = std::map<std::string, std::vector<float>>;  // whole tensors

struct OneRankStep {
  std::vector<OneRankGradients> replicas;  // of the mean over a replica's tokens
  double loss = 0;                         // mean over all
  std::string tied_words = {};             // what is wrong with a tied table; empty: nothing
};
// Computed on rank 0, on all ranks. Collective.
OneRankStep one_rank_step(const SelfCheckRun& run);

// Relative: rounding that layouts differ by in what is added up over ranks, where what goes into the sums is the same, and in gradients.
double sum_limit(const Precision& precision);
double gradient_limit(const Precision& precision, const ParallelConfig& parallel);

}  // namespace hlat
