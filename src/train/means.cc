#include "train/means.h"

#include <algorithm>
#include <cmath>

#include "train/trainer.h"

namespace hlat {

Means::Means(int64_t done, int64_t steps) : last_(std::max<int64_t>(1, std::min<int64_t>(20, steps / 20))), done_(done), steps_(steps) {}

void Means::add(const StepMetrics& m, int64_t tokens) {
  if (!m.skipped) latest_loss_ = m.loss;
  if (!m.skipped && m.step > steps_ - last_) loss_ += m.loss, ++losses_;
  if (!m.computed && m.step == done_ + 1) ++done_;  // the next one is the first
  if (!m.computed) return;
  if (m.step > done_ + 1 || steps_ == done_ + 1) seconds_ += m.step_s, tokens_ += tokens, data_wait_s_ += m.data_wait_s;
  if (m.step > done_ + 1) ++timed_;
}

void Means::finish(TrainSummary& s) const {
  s.loss = losses_ > 0 ? loss_ / static_cast<double>(losses_) : latest_loss_;  // none of the last ones: a signal came before them
  s.loss_steps = std::isnan(s.loss) ? losses_ : std::max<int64_t>(losses_, 1);
  s.data_wait_s = data_wait_s_;
  s.tokens_per_s = seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0;  // none: all steps were passed over
  s.timed_steps = timed_;
}

}  // namespace hlat
