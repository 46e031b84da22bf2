// All elements of all tensors of a checkpoint as bytes, for tests that compare checkpoints.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/checkpoint_reader.h"

namespace hlat::test {

inline std::string checkpoint_content(const std::filesystem::path& folder) {
  CheckpointReader reader(folder);
  std::string all;
  for (size_t t = 0; t < reader.index().tensors.size(); ++t) {
    const SavedTensor& tensor = reader.index().tensors[t];
    const size_t begin = all.size();
    all.resize(begin + static_cast<size_t>(tensor.shape.numel()) * size_of(tensor.dtype));
    reader.read(static_cast<int32_t>(t), 0, tensor.shape.numel(), all.data() + begin);
  }
  return all;
}

}  // namespace hlat::test
