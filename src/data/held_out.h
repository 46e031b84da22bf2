// A rank's share of the rows of a validation set. Each row is the first of its own lane over the set's documents, so it starts with a
// document, and rows are the same in every run, stage and layout. They are read once, when this is made.
#pragma once

#include <vector>

#include "data/batch.h"
#include "data/dataset.h"

namespace hlat {

class HeldOutRows : public BatchSource {
 public:
  // The `own` of `rows` rows (validate_rows of the config).
  HeldOutRows(const Dataset& data, const ValidationSet& set, int64_t rows, Part own);

  void read(int64_t first, Batch& batch) override;
  int64_t rows() const { return static_cast<int64_t>(tokens_.size()) / (seq_len_ + 1); }  // own
  size_t target_bytes() const { return target_bytes_; }                                   // of text behind the own rows' targets

 private:
  int64_t seq_len_;
  std::vector<int32_t> tokens_;  // (own rows, T + 1)
  size_t target_bytes_ = 0;
};

}  // namespace hlat
