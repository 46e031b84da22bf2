#include "eval/validation.h"

#include <cmath>
#include <numbers>

#include "eval/mean_loss.h"

namespace hlat {

Validation::Validation(const Config& config, const Dataset* data, const Mesh& mesh) : rows_(validate_rows(config)) {
  if (data == nullptr) return;
  held_out_.emplace(*data, rows_, part_of(rows_, mesh.coord().dp, mesh.shape().dp));
  bytes_ = sum_over(mesh.along(Axis::dp), static_cast<double>(held_out_->target_bytes()));
}

ValidationResult Validation::run(Executor& executor) {
  const double loss = mean_loss(executor, rows_, held_out_ ? &*held_out_ : nullptr);
  const auto tokens = static_cast<double>(rows_ * executor.config().train.seq_len);
  return {.loss = loss, .perplexity = std::exp(loss), .bits_per_byte = loss * tokens / std::numbers::ln2 / bytes_};
}

}  // namespace hlat
