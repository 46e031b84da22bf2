// The held-out rows and what the model makes of them. Rows are read once, before training: each is the first of its own lane over the
// held-out documents, so it starts with a document, and they are the same in every run, stage and layout.
#pragma once

#include <limits>
#include <vector>

#include "data/batch.h"
#include "data/dataset.h"
#include "model/executor.h"
#include "parallel/mesh.h"

namespace hlat {

struct ValidationResult {
  double loss = std::numeric_limits<double>::quiet_NaN();  // nats per token
  double perplexity = std::numeric_limits<double>::quiet_NaN();
  double bits_per_byte = std::numeric_limits<double>::quiet_NaN();  // of the text behind the tokens
};

class Validation : private BatchSource {
 public:
  // Collective: all ranks read the rows of their replica.
  Validation(const Config& config, const Dataset* data, const Mesh& mesh);

  ValidationResult run(Executor& executor);  // collective
  int64_t rows() const { return rows_; }
  double bytes() const { return bytes_; }

 private:
  void read(int64_t first, Batch& batch) override;

  int64_t rows_, seq_len_;
  std::vector<int32_t> tokens_;  // (rows of this replica, T + 1)
  double bytes_ = 0;             // of text behind the targets of all rows
};

// Bytes of the text behind the targets of a row that starts with a document; `parts` as Lanes::read_row gives them.
size_t target_bytes(const Tokenizer& tokenizer, const SpecialTokens& special, const std::vector<int32_t>& row,
                    const std::vector<RowPart>& parts);

}  // namespace hlat
