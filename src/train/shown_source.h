// A source that shows how far the first step is, and adds up what is known of the entropy of its rows.
#pragma once

#include <cstdint>
#include <optional>

#include "data/batch.h"
#include "record/progress.h"

namespace hlat {

class ShownSource final : public BatchSource {
 public:
  // progress: where it is shown, or null. micros: micro-batches of a step.
  ShownSource(BatchSource& source, Progress* progress, int64_t micros) : source_(source), progress_(progress), micros_(micros) {}

  void read(int64_t first, Batch& batch) override;
  std::optional<double> entropy() const override { return sum_; }  // the sum over micro-batches
  int32_t source_of(int64_t step, int64_t row) const override { return source_.source_of(step, row); }

 private:
  BatchSource& source_;
  Progress* progress_;
  int64_t micros_;
  std::optional<double> sum_;
};

}  // namespace hlat
