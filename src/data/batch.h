// Micro-batches on the host, and who hands them out. A source is made for one rank and knows which rows of the global batch are that
// rank's own; who reads from it counts rows from 0. Ranks that hold the same rows (tensor parallelism) have one source between them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace hlat {

struct Batch {
  int64_t rows = 0, seq_len = 0;
  std::vector<int32_t> inputs, targets;  // (rows, T) each

  Batch(int64_t rows_, int64_t seq_len_)
      : rows(rows_), seq_len(seq_len_), inputs(static_cast<size_t>(rows_ * seq_len_)), targets(static_cast<size_t>(rows_ * seq_len_)) {}

  // A row is a stretch of text of T + 1 tokens: each but the last is an input, each but the first a target.
  void set_row(int64_t row, const int32_t* tokens) {
    std::copy_n(tokens, seq_len, inputs.begin() + row * seq_len);
    std::copy_n(tokens + 1, seq_len, targets.begin() + row * seq_len);
  }
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills the batch with rows [first, first + batch.rows) of this rank's rows of the step under way. A step reads each row once.
  virtual void read(int64_t first, Batch& batch) = 0;
  // The mean surprisal (nats per token) of the rows of the batch read last, where the distribution the text was drawn from is known.
  virtual std::optional<double> entropy() const { return {}; }
  // Which of the run's sources row `row` of this rank's rows of a step comes from, by its number in the config.
  virtual int32_t source_of(int64_t /*step*/, int64_t /*row*/) const { return 0; }
};

}  // namespace hlat
