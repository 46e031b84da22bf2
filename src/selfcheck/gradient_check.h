// Gradients of all ranks against those of one rank: each rank holds what it has after all sums against the mean of the replicas' gradients
// (one_rank.h), tensor by tensor. Where that is off, the rank fits the shares that the replicas' gradients have in its own: a share that is
// not 1 names the rank whose part was lost or scaled.
#pragma once

#include "selfcheck/local_parts.h"
#include "selfcheck/one_rank.h"
#include "selfcheck/verdict.h"

namespace hlat {

// How far a rank's gradient of one tensor is from one rank's.
struct GradientError {
  int rank = 0;
  std::string tensor;
  double distance = 0;         // relative to its size
  double rest = 0;             // what of it the shares do not explain
  std::vector<double> shares;  // of each replica's gradient; 1 is right; empty: they cannot be told apart
};
// Of the tensors of this rank, those above the limit, and the worst.
std::vector<GradientError> gradient_errors(const SelfCheckRun& run, const std::vector<LocalPart>& own, const OneRankStep& one,
                                           double limit);

// Words on errors above the limit: whose share is wrong, or where gradients differ most.
std::string gradient_words(const SelfCheckRun& run, const std::vector<GradientError>& errors, double limit);

// Collective. `loss`: of the same step on all ranks.
ModelVerdict check_gradients(const SelfCheckRun& run, const Precision& precision, const std::vector<LocalPart>& own, double loss,
                             const OneRankStep& one);

}  // namespace hlat
