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

}  // namespace
}  // namespace hlat
