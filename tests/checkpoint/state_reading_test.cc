// Tensors that are longer than what a thread reads in one go, converted on the way, and what happens when a read fails.
#include "checkpoint/state_reading.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint_writer.h"
#include "support/host_memory.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

constexpr int64_t kRows = 5000, kColumns = 1030, kFirst = 7, kWidth = 1000;

// Exact in bf16.
float value_of(int64_t element) { return static_cast<float>(element * 7 % 251); }

// A checkpoint of one matrix, a file for each piece.
std::filesystem::path write_matrix(const std::string& parent, DType type) {
  CheckpointIndex index;
  index.content = CheckpointContent::weights;
  index.run = "matrix";
  index.created = "2026-01-01T00:00:00Z";
  index.config = "{}";
  index.tensors = {{.name = "matrix", .kind = StateKind::weight, .dtype = type, .shape = {kRows, kColumns}}};
  const auto content = [&](int32_t, int64_t first, int64_t count, void* to) {
    const Tensor t = Tensor::contiguous(to, type, {count});
    for (int64_t e = 0; e < count; ++e) store_f64(t, e, value_of(first + e));
  };
  return write_checkpoint(parent, index, content, 1 << 20);
}

TEST(StateReading, LongTensorsComeInManyChunksFromSeveralThreads) {
  CpuBackend backend({.threads = 1, .isa = "auto"});
  for (const DType saved : {DType::f32, DType::bf16})
    for (const DType wanted : {DType::f32, DType::bf16}) {
      const test::TempDir dir;
      CheckpointReader reader(write_matrix(dir.path(), saved), size_t{8} << 20);
      HostMemory memory;
      const Tensor columns = memory.zeros(wanted, {kRows * kWidth}), tail = memory.zeros(wanted, {100});
      const ElementMap map{.first = kFirst, .run = kWidth, .stride = kColumns};
      read_tensors(reader, {{columns, 0, map}, {tail, 0, {.first = kRows * kColumns - 100}}}, backend.device(), 3);
      int64_t wrong = 0;
      for (int64_t e = 0; e < columns.numel(); ++e) wrong += load_f64(columns, e) != value_of(map.global(e));
      for (int64_t e = 0; e < 100; ++e) wrong += load_f64(tail, e) != value_of(kRows * kColumns - 100 + e);
      EXPECT_EQ(wrong, 0) << name_of(saved) << " to " << name_of(wanted);
      EXPECT_LT(reader.bytes_read(), 2 * reader.index().bytes()) << "the cache holds what neighbouring chunks share";
    }
}

TEST(StateReading, AFileThatIsCutEndsAllThreads) {
  CpuBackend backend({.threads = 1, .isa = "auto"});
  const test::TempDir dir;
  const std::filesystem::path folder = write_matrix(dir.path(), DType::f32);
  CheckpointReader reader(folder);
  ASSERT_GT(reader.index().files.size(), 3u) << "a file for each piece";
  std::filesystem::resize_file(folder / reader.index().files[2].name, 5000);
  HostMemory memory;
  const Tensor all = memory.zeros(DType::f32, {kRows * kColumns});
  EXPECT_THROW(read_tensors(reader, {{all, 0, {}}}, backend.device(), 4), DamagedCheckpoint);
}

}  // namespace
}  // namespace hlat
