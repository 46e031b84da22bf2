// What two checkpoints differ in, element by element, whatever the layouts they were saved in. Tensors are read from beginning to end, in
// ranges of a few MiB on several threads; sums are f64 per range and added in order, so the numbers do not depend on threads.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/config_difference.h"
#include "checkpoint/for_all.h"

namespace hlat {

struct TensorDifference {
  SavedTensor a, b;              // the same kind and name; of different shapes nothing is compared
  int64_t differing = 0;         // elements with other bits; where the types differ, with other values
  int64_t not_comparable = 0;    // elements of these whose difference is not finite: the numbers below are without them
  double largest = 0, mean = 0;  // absolute difference
  int64_t largest_at = 0;        // the element, counted through the tensor
  double rms = 0;                // of A's finite elements

  bool identical() const { return a.shape == b.shape && differing == 0; }
};

struct CheckpointDifference {
  std::vector<TensorDifference> tensors;  // in both, in the order of A
  std::vector<SavedTensor> only_a, only_b;
  std::vector<ConfigDifference> config;
  std::vector<std::string> records;  // names of those that differ or that one does not have

  bool identical_tensors() const;
};

enum class DiffWhat : uint8_t { all, weights };

uint64_t diff_bytes(const CheckpointIndex& a, const CheckpointIndex& b, DiffWhat what);  // that `done` will be told about
CheckpointDifference compare_checkpoints(CheckpointReader& a, CheckpointReader& b, DiffWhat what, int threads, const BytesDone& done = {});

}  // namespace hlat
