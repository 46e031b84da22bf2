#include "data/first_rows.h"

#include "data/train_batches.h"

namespace hlat {

Batch first_rows(const Dataset& data, int64_t rows) {
  const TrainData start(data.identity(), data.train());
  Lanes lanes = start.lanes();
  Readers readers(start.mixture());
  Batch batch(rows, lanes.seq_len());
  std::vector<int32_t> tokens(static_cast<size_t>(lanes.seq_len() + 1));
  for (int64_t r = 0; r < rows; ++r) {
    lanes.read_row(r, readers, tokens.data());
    batch.set_row(r, tokens.data());
  }
  return batch;
}

}  // namespace hlat
