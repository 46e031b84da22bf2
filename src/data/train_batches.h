// The training batches of one rank.
#pragma once

#include "base/part.h"
#include "data/batch.h"
#include "data/dataset.h"

namespace hlat {

class TrainBatches : public BatchSource {
 public:
  TrainBatches(const Dataset& data, const Part& own, int64_t lanes, int64_t seq_len);
  void read(int64_t first, Batch& batch) override;
  std::optional<double> entropy() const override { return entropy_; }
  std::vector<LaneState> lanes() const { return loader_.states(); }
  DataState position() const;

 private:
  const Dataset& data_;
  Loader loader_;
  std::optional<double> entropy_;
};

}  // namespace hlat
