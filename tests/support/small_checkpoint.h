// Checkpoints that tests make from numbers they know, in the layouts of one rank and of tensor parallel ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/index.h"

namespace hlat::test {

struct SmallTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;  // rounded where dtype is bf16
  StateKind kind = StateKind::weight;
  DType dtype = DType::f32;
};

struct SmallCheckpoint {
  int64_t step = 10, tokens = 1280;
  CheckpointContent content = CheckpointContent::training;
  std::string run = "run-a";
  std::string config = R"({"run":{"dir":"runs/a"},"model":{"layers":2,"heads":2,"rope_theta":10000.0},"train":{"precision":"mixed"}})";
  std::optional<double> loss = 3.25;
  std::vector<SmallTensor> tensors;
  std::vector<Record> records = {{"progress", 1, R"({"step":10})"}};
  uint64_t max_file_bytes = uint64_t{1} << 20;

  SmallTensor& tensor(StateKind kind, const std::string& name);
};

// A model with matrices and vectors: bf16 weights, and with an optimizer f32 masters and moments. Values follow from the seed.
SmallCheckpoint small_model(uint32_t seed, bool optimizer = true);

// Writes PARENT/step_N and returns it.
std::filesystem::path write_small(const std::filesystem::path& parent, const SmallCheckpoint& checkpoint);
// The same elements in a file for each of some ranks, which have equal shares of the columns of matrices; the first has the vectors. The
// columns must be a multiple of the ranks.
std::filesystem::path write_in_columns(const std::filesystem::path& parent, const SmallCheckpoint& checkpoint, int ranks);

std::vector<float> read_values(CheckpointReader& reader, StateKind kind, const std::string& name);

// Changes the byte at `offset`; counted from the end where it is negative.
void flip_byte(const std::filesystem::path& file, int64_t offset);

}  // namespace hlat::test
