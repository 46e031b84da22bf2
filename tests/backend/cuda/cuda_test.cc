// That a GPU is here to be tested: the tests of the op set and of whole steps run on it under the name cuda.
#include <gtest/gtest.h>

#include "support/test_device.h"

namespace hlat {
namespace {

TEST(Cuda, IsTested) {
#ifndef HLAT_HAVE_CUDA
  GTEST_SKIP() << "built without CUDA: the cuda backend is not tested";
#endif
  const auto backend = cuda_backend(false);
  if (backend == nullptr) GTEST_SKIP() << "no GPU: the cuda backend is not tested";
  EXPECT_NE(backend->describe().find("CUDA"), std::string::npos) << backend->describe();
  EXPECT_GT(backend->device().memory_available(), 0u);
}

// More than the ring of upload buffers holds, and an odd size.
TEST(Cuda, CopiesThereAndBack) {
  const auto backend = cuda_backend(false);
  if (backend == nullptr) GTEST_SKIP() << "no GPU: the cuda backend is not tested";
  std::vector<int32_t> in(3'000'017), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i * 7919);
  Device& device = backend->device();
  std::byte* p = device.allocate(in.size() * sizeof(int32_t));
  const Tensor t = Tensor::contiguous(p, DType::i32, {static_cast<int64_t>(in.size())});
  device.upload(t, in.data());
  device.download(out.data(), t);
  device.free(p);
  EXPECT_TRUE(in == out);
  EXPECT_THROW(device.allocate(size_t{1} << 50), Error);
}

#ifdef HLAT_HAVE_CUDA
constexpr size_t kMiB = size_t{1} << 20;

// Memory of a backend that leaves so much of the GPU free beside recordings, and work on it to be recorded.
class Recorder {
 public:
  explicit Recorder(size_t spare) : backend_({.spare_bytes = spare}), block_(device().allocate(kMiB)), ops_(backend_.make_ops(none_)) {}
  ~Recorder() { device().free(block_); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  Device& device() { return backend_.device(); }
  std::vector<std::string> notes() { return backend_.take_kernel_notes(); }
  void work(int calls) {
    for (int i = 0; i < calls; ++i) ops_->fill(Tensor::contiguous(block_, DType::f32, {256}), i);
  }
  std::unique_ptr<Recording> record(int calls) {
    return device().record([&] { work(calls); });
  }

 private:
  CudaBackend backend_;
  std::byte* block_;
  Region none_;
  std::unique_ptr<Ops> ops_;
};

TEST(Cuda, NothingIsRecordedWhereMemoryIsShort) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU: recordings are not tested";
  Recorder enough(kMiB), short_of(size_t{1} << 50);
  for (Recorder* r : {&enough, &short_of}) r->work(1);
  EXPECT_NE(enough.record(1), nullptr);
  EXPECT_TRUE(enough.notes().empty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(short_of.device().record([] { ADD_FAILURE() << "recorded"; }), nullptr);
  EXPECT_EQ(short_of.notes().size(), 1u) << "told once";
}

TEST(Cuda, RecordingsLeaveMemoryForKernelsThatComeLater) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU: recordings are not tested";
  const size_t spare = Recorder(0).device().memory_available() - 64 * kMiB;
  Recorder recorder(spare);
  recorder.work(1);
  std::vector<std::unique_ptr<Recording>> kept;
  while (kept.size() < 5000) {
    std::unique_ptr<Recording> recording = recorder.record(1000);
    if (recording == nullptr) break;
    EXPECT_GE(recorder.device().memory_available(), spare);
    kept.push_back(std::move(recording));
  }
  EXPECT_LT(kept.size(), 5000u) << "recordings take no memory";
  EXPECT_EQ(recorder.notes().size(), 1u);
}
#endif

}  // namespace
}  // namespace hlat
