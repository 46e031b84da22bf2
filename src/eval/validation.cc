#include "eval/validation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "eval/mean_loss.h"

namespace hlat {

size_t target_bytes(const Tokenizer& tokenizer, const SpecialTokens& special, const std::vector<int32_t>& row,
                    const std::vector<RowPart>& parts) {
  // The text of a document's first tokens is certain; that of tokens from its middle may hang on what stands before.
  const auto bytes_of = [&](std::span<const int32_t> ids) {
    if (!ids.empty() && special.bos && ids.front() == *special.bos) ids = ids.subspan(1);
    if (!ids.empty() && ids.back() == special.eos) ids = ids.first(ids.size() - 1);
    return ids.empty() ? 0 : tokenizer.decode(ids).size();
  };
  const std::span<const int32_t> all(row);
  size_t bytes = 0;
  for (size_t i = 0; i < parts.size();) {
    size_t j = i + 1;  // pieces of one document belong together
    while (j < parts.size() && !parts[j].starts) ++j;
    const auto begin = static_cast<size_t>(parts[i].begin), end = static_cast<size_t>(parts[j - 1].begin + parts[j - 1].count);
    bytes += bytes_of(all.subspan(begin, end - begin));
    i = j;
  }
  return bytes - bytes_of(all.first(1));  // the row's first token is no target
}

Validation::Validation(const Config& config, const Dataset* data, const Mesh& mesh)
    : rows_(validate_rows(config)), seq_len_(config.train.seq_len) {
  if (data == nullptr) return;
  const Part own = part_of(rows_, mesh.coord().dp, mesh.shape().dp);
  Lanes lanes(data->validation(), rows_, seq_len_);
  Readers readers(data->validation());
  std::vector<int32_t> row(static_cast<size_t>(seq_len_) + 1);
  size_t bytes = 0;
  for (int64_t r = own.begin; r < own.end(); ++r) {
    std::vector<RowPart> parts;
    lanes.read_row(r, readers, row.data(), &parts);
    tokens_.insert(tokens_.end(), row.begin(), row.end());
    bytes += target_bytes(data->tokenizer(), data->special(), row, parts);
  }
  bytes_ = sum_over(mesh.along(Axis::dp), static_cast<double>(bytes));
}

void Validation::read(int64_t first, Batch& batch) {
  for (int64_t i = 0; i < batch.rows; ++i) {
    const int32_t* row = tokens_.data() + (first + i) * (seq_len_ + 1);
    std::copy_n(row, seq_len_, batch.inputs.data() + i * seq_len_);
    std::copy_n(row + 1, seq_len_, batch.targets.data() + i * seq_len_);
  }
}

ValidationResult Validation::run(Executor& executor) {
  ValidationResult r;
  r.loss = mean_loss(executor, rows_, executor.reads_batches() ? this : nullptr);
  r.perplexity = std::exp(r.loss);
  r.bits_per_byte = r.loss * static_cast<double>(rows_ * seq_len_) / std::numbers::ln2 / bytes_;
  return r;
}

}  // namespace hlat
