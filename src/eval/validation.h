// What a mean loss over the held-out rows says: perplexity, and bits per byte of the text behind the tokens.
#pragma once

#include <limits>
#include <optional>

#include "data/held_out.h"
#include "model/executor.h"

namespace hlat {

struct ValidationResult {
  double loss = std::numeric_limits<double>::quiet_NaN();  // nats per token
  double perplexity = std::numeric_limits<double>::quiet_NaN();
  double bits_per_byte = std::numeric_limits<double>::quiet_NaN();  // of the text behind the tokens; known where batches are read
};

class Validation {
 public:
  // Collective. Ranks that read batches read the rows of their replica; data is null on the others.
  Validation(const Config& config, const Dataset* data, const Mesh& mesh);

  ValidationResult run(Executor& executor);  // collective

 private:
  int64_t rows_;  // of all replicas
  std::optional<HeldOutRows> held_out_;
  double bytes_ = std::numeric_limits<double>::quiet_NaN();  // of text behind the targets of all rows
};

}  // namespace hlat
