// Log-likelihoods of continuations on one replica. Beginnings that requests share are computed once (eval/prefix_tree.h); what is left is
// packed into passes without padding, long stretches over several passes. A continuation of one token costs no token of its own: it is read
// off the logits that follow its context, as are the other choices after the same context.
//
// The cache is a stack: stretches come in depth-first order, so when a pass has run, the slots above the ancestors of the next stretch are
// free again.
#pragma once

#include "eval/language_model.h"
#include "model/kv_passes.h"

namespace hlat {

// Collective over the replica, with the same requests; all of its ranks get the scores.
std::vector<Score> score_all(KvPasses& passes, std::span<const ScoreRequest> requests, const LanguageModel::Told& told = {});

}  // namespace hlat
