// How long an observer (an agent, the launcher itself) did not run, counted so that every second is handed out once: a delay that was told
// or seen stays what it is however often one looks.
#pragma once

#include <algorithm>
#include <utility>

namespace hlat {

class LateCount {
 public:
  // The observer itself says that it was held up for so long.
  void add(double seconds) { waiting_ += std::max(0.0, seconds); }

  // It was last heard so long ago. What goes beyond `usual` counts, and of that what was not counted at the look before.
  void silent(double seconds, double usual) {
    const double beyond = std::max(0.0, seconds - usual);
    waiting_ += std::max(0.0, beyond - counted_);
    counted_ = beyond;
  }

  double take() { return std::exchange(waiting_, 0.0); }

 private:
  double waiting_ = 0;  // to be handed out
  double counted_ = 0;  // of the silence that lasts
};

}  // namespace hlat
