#include "eval/validation.h"

#include <cmath>
#include <numbers>

namespace hlat {

// All stages walk micro-batches and chunks in one order, each waiting for the virtual stage before it: that cannot deadlock. The buffers
// are those of a training step, so an executor that trains needs no more memory for it.
double mean_loss(Executor& executor, int64_t rows, BatchSource* source) {
  const Config& config = executor.config();
  const Mesh& mesh = executor.mesh();
  const int64_t dp = mesh.shape().dp, micro_batch = config.train.micro_batch;
  HLAT_CHECK(rows > 0 && rows % (dp * micro_batch) == 0, "{} rows for {} replicas with micro-batches of {}", rows, dp, micro_batch);
  Batch batch(micro_batch, config.train.seq_len);
  executor.ops().fill(executor.loss_sum(), 0);
  for (int64_t micro = 0; micro < rows / dp / micro_batch; ++micro)
    for (int c = 0; c < static_cast<int>(executor.chunks().size()); ++c) {
      const Llama::Chunk& chunk = executor.chunks()[static_cast<size_t>(c)];
      const Action a{.kind = ActionKind::forward, .micro = static_cast<int>(micro), .chunk = c};
      if (chunk.first || chunk.last) {
        if (source != nullptr) source->read(micro * micro_batch, batch);
        executor.load(a, batch.inputs.data(), batch.targets.data());
      }
      executor.forward(a);
      if (chunk.last) executor.loss(a);
    }
  executor.finish_sends();
  // Losses are equal on all tp ranks of the last stage and zero on other stages.
  for (const Axis axis : {Axis::dp, Axis::pp}) mesh.along(axis).all_reduce(executor.loss_sum());
  double sum = 0;
  executor.device().download(&sum, executor.loss_sum());
  mesh.check();  // a group that gave up lets the device go, with any sum
  return sum / static_cast<double>(rows * config.train.seq_len);
}

// Ranks that read no batches learn from the first of all how many sets there are and what they weigh.
Validation::Validation(const Config& config, const Dataset* data, const Mesh& mesh) : rows_(validate_rows(config)) {
  const bool first = mesh.coord().dp == 0 && mesh.coord().pp == 0 && mesh.coord().tp == 0;
  const double count = sum_over(mesh, first ? static_cast<double>(data->validation_sets().size()) : 0.0);
  sets_.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < sets_.size(); ++i) {
    Set& set = sets_[i];
    set.weight = sum_over(mesh, first ? data->validation_sets()[i].weight : 0.0);
    if (data == nullptr) continue;
    const ValidationSet& documents = data->validation_sets()[i];
    set.name = documents.name;
    set.own_rows.emplace(*data, documents, rows_, part_of(rows_, mesh.coord().dp, mesh.shape().dp));
    set.bytes = sum_over(mesh.along(Axis::dp), static_cast<double>(set.own_rows->target_bytes()));
  }
}

ValidationResult Validation::run(Executor& executor) {
  const auto tokens = static_cast<double>(rows_ * executor.config().train.seq_len);
  ValidationResult result;
  result.loss = 0;
  double bytes_per_token = 0;
  for (Set& set : sets_) {
    const double loss = mean_loss(executor, rows_, set.own_rows ? &*set.own_rows : nullptr);
    result.loss += set.weight * loss;
    bytes_per_token += set.weight * set.bytes / tokens;
    if (set.own_rows) result.sets.push_back({set.name, loss, loss * tokens / std::numbers::ln2 / set.bytes});
  }
  result.perplexity = std::exp(result.loss);
  result.bits_per_byte = result.loss / std::numbers::ln2 / bytes_per_token;
  return result;
}

}  // namespace hlat
