// The mean loss of rows that nothing is learned from, per source and of all, and what it says: perplexity, and bits per byte of the text
// behind the tokens.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/held_out.h"
#include "model/executor.h"

namespace hlat {

// The mean loss of `rows` rows that nothing is learned from, of all replicas together, a multiple of their micro-batches. Collective.
// `source` hands out this replica's share, on ranks whose executor reads batches; null elsewhere.
double mean_loss(Executor& executor, int64_t rows, BatchSource* source);

struct SetLoss {
  std::string name;
  double loss = 0, bits_per_byte = 0;
};

struct ValidationResult {
  double loss = std::numeric_limits<double>::quiet_NaN();  // nats per token
  double perplexity = std::numeric_limits<double>::quiet_NaN();
  double bits_per_byte = std::numeric_limits<double>::quiet_NaN();  // of the text behind the tokens; known where batches are read
  std::vector<SetLoss> sets;                                        // those that the means above are of; known where batches are read
};

class Validation {
 public:
  // Collective. Ranks that read batches read the rows of their replica; data is null on the others.
  Validation(const Config& config, const Dataset* data, const Mesh& mesh);

  ValidationResult run(Executor& executor);  // collective

 private:
  struct Set {
    std::string name;
    double weight = 0;                                        // they sum to 1
    double bytes = std::numeric_limits<double>::quiet_NaN();  // of text behind the targets of all rows
    std::optional<HeldOutRows> own_rows;
  };
  int64_t rows_;  // of each set, of all replicas
  std::vector<Set> sets_;
};

}  // namespace hlat
