// What a spike is. Two rules, each against the steps before:
//
//   robust   loss > median + factor * spread, over the last `window` losses; spread: 1.4826 times the median of |loss - median|, which for
//            normal noise is its standard deviation, and at least a small share of the median, so that a loss that stands still, or is
//            nearly without noise, does not alarm
//   hlat     gradient norm > mean of the last 20 + norm_rise (HLAT, Fig. 2)
//
// Nothing is a spike until there are enough steps. All finite values enter, spikes too: a level that stays is soon no spike any more. The
// history is part of a checkpoint: a resumed run decides as the uninterrupted one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

// Of the latest steps, the oldest first.
struct SpikeHistory {
  std::vector<double> losses, norms;
  bool operator==(const SpikeHistory&) const = default;
};

struct SpikeFinding {
  bool spike = false;
  double median = 0, spread = 0;  // of the losses before
  double norm_mean = 0;           // of the gradient norms before; each 0 when there were none
  std::string words = {};         // of a spike: "the loss 9.1 is far above ..."
};

class SpikeWatch {
 public:
  // The history must outlive this. A longer one than the rule looks at is cut to its latest steps.
  SpikeWatch(const LossConfig& config, SpikeHistory& history);

  SpikeFinding judge(double loss, double grad_norm) const;
  void add(double loss, double grad_norm);  // where both are finite

 private:
  void cut();

  LossConfig config_;
  SpikeHistory& history_;
};

}  // namespace hlat
