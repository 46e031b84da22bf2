// Rows of random tokens for the checks of a model: functions of step and global row alone, so that every layout has the same batch. A row
// is a stretch of T + 1 tokens, as rows of real data are. To see what a position depends on, tokens from a position on can be made others,
// and targets be left out of the loss.
#pragma once

#include "config/config.h"
#include "data/batch.h"

namespace hlat {

class KnownRows : public BatchSource {
 public:
  // first_row: of this rank, in the batch of all.
  KnownRows(const Config& config, int64_t first_row) : vocab_(config.model.vocab), first_(first_row) {}
  void read(int64_t first, Batch& batch) override;

  int64_t step = 1;
  int64_t losses = -1;          // only the first so many positions of a row have a loss; -1: all
  int64_t others_from = -1;     // inputs from this position on are other tokens; -1: none
  int64_t others_to = 1 << 30;  // up to this one

 private:
  int64_t vocab_, first_;
};

}  // namespace hlat
