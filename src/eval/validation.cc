#include "eval/validation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hlat {

ValidationResult validation_result(double loss, int64_t tokens, double bytes) {
  return {.loss = loss, .perplexity = std::exp(loss), .bits_per_byte = loss * static_cast<double>(tokens) / std::numbers::ln2 / bytes};
}

Validation::Validation(const Config& config, const Dataset& data, const Mesh& mesh)
    : rows_(validate_rows(config)),
      own_(part_of(rows_, mesh.coord().dp, mesh.shape().dp)),
      held_out_(data, rows_, own_),
      batch_(config.train.micro_batch, config.train.seq_len),
      bytes_(sum_over(mesh.along(Axis::dp), static_cast<double>(held_out_.target_bytes()))) {}

ValidationResult Validation::run(StepRunner& runner) {
  const auto fill = [&](int64_t first, int32_t* inputs, int32_t* targets) {
    held_out_.read(first - own_.begin, batch_);
    std::copy(batch_.inputs.begin(), batch_.inputs.end(), inputs);
    std::copy(batch_.targets.begin(), batch_.targets.end(), targets);
  };
  return validation_result(runner.evaluate(rows_, fill), rows_ * batch_.seq_len, bytes_);
}

}  // namespace hlat
