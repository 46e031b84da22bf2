// Gradients of all ranks against those of one rank: each rank holds what it has after all sums against the mean of the replicas' gradients
// (one_rank.h), tensor by tensor. Where that is off, the rank fits the shares that the replicas' gradients have in its own: a share that is
// not 1 names the rank whose part was lost or scaled. Rounding of FP8 that layouts differ by is as large as such a fault, but points
// nowhere: there the shares are held against 1 too.
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
  bool wrong = false;          // above the limit, or of such shares
};
struct GradientLimit {
  double distance = 0;
  bool shares = false;  // a share that is not 1 is wrong within it too
};
// Of the tensors of this rank, those that are wrong, and the worst.
std::vector<GradientError> gradient_errors(const SelfCheckRun& run, const std::vector<LocalPart>& own, const OneRankStep& one,
                                           const GradientLimit& limit);

// Words on those that are wrong: whose share is, or where gradients differ most.
std::string gradient_words(const SelfCheckRun& run, const std::vector<GradientError>& errors, const GradientLimit& limit);

// Collective. `loss`: of the same step on all ranks.
ModelVerdict check_gradients(const SelfCheckRun& run, const Precision& precision, const std::vector<LocalPart>& own, double loss,
                             const OneRankStep& one);

}  // namespace hlat
