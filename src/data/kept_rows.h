// Rows of one step that can be read more than once: a source hands out each of them a single time.
#pragma once

#include <map>

#include "data/batch.h"

namespace hlat {

class KeptRows final : public BatchSource {
 public:
  explicit KeptRows(BatchSource& source) : source_(source) {}  // it must outlive this
  void read(int64_t first, Batch& batch) override {
    const auto [kept, fresh] = rows_.try_emplace(first, batch);
    if (fresh) source_.read(first, kept->second);
    batch = kept->second;
  }
  int32_t source_of(int64_t step, int64_t row) const override { return source_.source_of(step, row); }

 private:
  BatchSource& source_;
  std::map<int64_t, Batch> rows_;  // by the first of a batch
};

}  // namespace hlat
