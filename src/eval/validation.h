// What a mean loss over the held-out rows says: perplexity, and bits per byte of the text behind the tokens.
#pragma once

#include <limits>
#include <optional>

#include "data/held_out.h"
#include "parallel/mesh.h"
#include "train/step_runner.h"

namespace hlat {

struct ValidationResult {
  double loss = std::numeric_limits<double>::quiet_NaN();  // nats per token
  double perplexity = std::numeric_limits<double>::quiet_NaN();
  double bits_per_byte = std::numeric_limits<double>::quiet_NaN();  // of the text behind the tokens
};

// Of a mean loss over `tokens` targets, which `bytes` of text stand behind.
ValidationResult validation_result(double loss, int64_t tokens, double bytes);

class Validation {
 public:
  // Collective: all ranks read the rows of their replica.
  Validation(const Config& config, const Dataset& data, const Mesh& mesh);

  ValidationResult run(StepRunner& runner);  // collective

 private:
  int64_t rows_;  // of all replicas
  Part own_;
  HeldOutRows held_out_;
  Batch batch_;
  double bytes_;  // of text behind the targets of all rows
};

}  // namespace hlat
