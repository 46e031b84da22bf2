// The layouts that a search looks at: all splits of the ranks into tp x pp x dp that the model and the batch allow, with the choices that
// go with them; and the neighbours of one layout, which differ from it in one thing.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

struct SpaceLimits {
  int64_t ranks = 1;
  int64_t most_tp = 64;                        // more would leave a rank next to nothing to compute
  std::vector<PrecisionKind> precisions = {};  // to choose among; empty: the config's own
};

// One split with everything that does not change what lies below it: micro-batches and recomputation are tried within it, least first.
struct LayoutFamily {
  Config config;                       // tp, pp, dp, chunks, sequence and precision set; micro_batch 1, cuts even
  std::vector<int64_t> micro_batches;  // that divide the batch, from 1 on
  std::vector<Recompute> recomputes;   // from the fastest to the one that keeps least
};

// Nothing that the config's own rules forbid. Empty where the ranks cannot be split at all.
std::vector<LayoutFamily> layout_families(const Config& config, const SpaceLimits& limits);

struct LayoutChange {
  std::string words;  // "tp 4", "recompute full"
  Config config;
};

// Each differs from `config` in one choice, with dp to match; those that the rules forbid are left out.
std::vector<LayoutChange> neighbours(const Config& config, const SpaceLimits& limits);

std::string layout_words(const Config& config);  // "tp 8 x pp 4 x dp 64, micro-batch 1, recompute selective, ..."
// The words of the command line that make this layout of a config.
std::vector<std::string> layout_keys(const Config& config);

}  // namespace hlat
