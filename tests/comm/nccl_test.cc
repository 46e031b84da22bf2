// NCCL in a group of one, the largest that one GPU allows: every function that groups use is called and gives what it must there.
#include <gtest/gtest.h>

#include "support/test_device.h"

#ifdef HLAT_HAVE_NCCL
#include <cuda_runtime_api.h>

#include "comm/nccl/nccl_comm.h"
#include "comm/nccl/nccl_group.h"
#include "comm/nccl/nccl_library.h"
#include "comm/self_comm.h"

namespace hlat {
namespace {

class NcclAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU: NCCL is not tested";
    std::string why;
    if (!NcclRank::available(why)) GTEST_SKIP() << "no NCCL: " << why;
    backend_ = std::make_unique<CudaBackend>(CudaOptions{});
    shared_ = std::make_unique<NcclShared>(backend_->index(), static_cast<cudaStream_t>(backend_->stream()), 60.0);
    ncclUniqueId id{};
    HLAT_NCCL(Nccl::get().GetUniqueId(&id));
    group_ = std::make_unique<NcclGroup>(*shared_, id, 0, 1, "alone");
  }
  void TearDown() override {
    group_.reset();
    if (memory_ != nullptr) backend_->device().free(memory_);
    shared_.reset();
  }

  // Two tensors of three rows; the first has values.
  void make(DType dtype) {
    if (memory_ != nullptr) backend_->device().free(memory_);
    const size_t bytes = static_cast<size_t>(kRows * kWidth) * size_of(dtype);
    memory_ = backend_->device().allocate(2 * bytes);
    a_ = Tensor::contiguous(memory_, dtype, {kRows, kWidth});
    b_ = Tensor::contiguous(memory_ + bytes, dtype, {kRows, kWidth});
    values_.resize(bytes);
    for (size_t i = 0; i < bytes; ++i) values_[i] = static_cast<std::byte>(i * 31 % 60);  // small finite numbers in every type
    const std::vector<std::byte> zeros(bytes);
    backend_->device().upload(a_, values_.data());
    backend_->device().upload(b_, zeros.data());
  }
  void expect(const Tensor& t, const char* what) {
    std::vector<std::byte> got(t.bytes());
    backend_->device().download(got.data(), t);
    EXPECT_TRUE(got == values_) << what << " of " << name_of(t.dtype);
    shared_->watch.check();
  }

  static constexpr int64_t kRows = 3, kWidth = 100003;
  std::unique_ptr<CudaBackend> backend_;
  std::unique_ptr<NcclShared> shared_;
  std::unique_ptr<NcclGroup> group_;
  std::byte* memory_ = nullptr;
  Tensor a_, b_;
  std::vector<std::byte> values_;
};

// Uploads and downloads are on the work stream, NCCL is not: values are right only if both directions wait.
TEST_F(NcclAlone, EveryFunctionKeepsTheValuesOfOneRank) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const auto after_work = [&](const char* what, const Tensor& result, const std::function<void()>& call) {
      make(dtype);
      group_->after_work();
      call();
      group_->before_work();
      expect(result, what);
    };
    const Shares even = Shares::of(Tensor::contiguous(nullptr, dtype, {kRows, kWidth}), 1);
    after_work("all_reduce", a_, [&] { group_->all_reduce(a_.data, a_.numel(), dtype); });
    after_work("reduce_scatter", b_, [&] { group_->reduce_scatter(b_.data, a_.data, even, dtype); });
    after_work("all_gather", b_, [&] { group_->all_gather(b_.data, a_.data, even); });
    after_work("broadcast", a_, [&] { group_->broadcast(a_.data, a_.bytes(), 0); });
    after_work("send and recv", b_, [&] {  // to itself: one operation of NCCL, or each would wait for the other
      HLAT_NCCL(Nccl::get().GroupStart());
      group_->send(a_.data, a_.bytes(), 0);
      group_->recv(b_.data, b_.bytes(), 0);
      HLAT_NCCL(Nccl::get().GroupEnd());
    });
  }
}

TEST_F(NcclAlone, OperationsAreSeenToEnd) {
  make(DType::f32);
  group_->after_work();
  group_->all_reduce(a_.data, a_.numel(), DType::f32);
  const cudaEvent_t point = group_->point();
  group_->work_waits(point);
  expect(a_, "all_reduce");
  EXPECT_FALSE(group_->current().has_value());
  EXPECT_EQ(group_->error(), "");
}

TEST_F(NcclAlone, AfterAFailureCallsThrow) {
  make(DType::f32);
  shared_->watch.give_up("alone: gave up");
  EXPECT_THROW(group_->all_reduce(a_.data, a_.numel(), DType::f32), Error);
}

TEST_F(NcclAlone, AGroupOfOneIsAComm) {
  make(DType::f32);
  NcclRank rank({.device = backend_->index(), .work_stream = backend_->stream(), .time_limit_s = 60});
  const auto comm = rank.make(std::make_unique<SelfComm>("tp"));
  comm->open_ring();
  comm->all_reduce(a_);
  comm->reduce_scatter(b_, a_);
  expect(b_, "reduce_scatter");
  comm->check();
  EXPECT_EQ(comm->split(0, 0, "kv")->size(), 1);
  EXPECT_NE(rank.describe().find("NCCL 2."), std::string::npos) << rank.describe();
}

}  // namespace
}  // namespace hlat

#else

TEST(NcclAlone, IsTested) { GTEST_SKIP() << "built without NCCL"; }

#endif
