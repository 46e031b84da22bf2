// The weighted mean of checkpoints, as a checkpoint of weights alone. Masters are averaged where all of them have masters, else weights;
// sums are f64, and the result is rounded once, to the nearest even. Its record "average" says what it was made of.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/for_all.h"

namespace hlat {

struct AverageOptions {
  std::vector<double> shares = {};  // of the checkpoints, relative to each other; empty: equal
  std::optional<DType> dtype = {};  // of the result; none: that of the first one's weights
  std::string hlat = {};            // version of this program
};

class CheckpointAverage {
 public:
  // UsageError names what does not go together: tensors, shapes, keys of the model.
  CheckpointAverage(const std::vector<std::filesystem::path>& checkpoints, const AverageOptions& options);

  // Of the result, without files: step, tokens and config of the last one.
  const CheckpointIndex& index() const { return index_; }
  bool of_masters() const { return kind_ == StateKind::master; }
  uint64_t bytes() const;  // of the result's tensors
  // Writes PARENT/step_N, which must not exist yet, and returns it. `done` is told about the result's bytes.
  std::filesystem::path write(const std::filesystem::path& parent, int threads, const BytesDone& done = {});

 private:
  void check_alike() const;
  void make_index(const AverageOptions& options);
  void average(int32_t tensor, int64_t first, int64_t count, void* to, int threads);

  std::vector<std::unique_ptr<CheckpointReader>> readers_;
  std::vector<double> shares_;
  StateKind kind_ = StateKind::weight;
  CheckpointIndex index_;
  std::vector<std::vector<int32_t>> sources_;  // by tensor of the result: its number in each checkpoint
  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace hlat
