#include "train/shown_source.h"

#include <cmath>

namespace hlat {

void ShownSource::read(int64_t first, Batch& batch) {
  if (progress_ != nullptr) progress_->first_step(first / batch.rows, micros_);
  source_.read(first, batch);
  // On a grid of 2^-32, where sums are exact in any order: the floor is then the same in every layout.
  if (const auto nats = source_.entropy()) sum_ = sum_.value_or(0) + std::nearbyint(*nats * 0x1p32) * 0x1p-32;
}

}  // namespace hlat
