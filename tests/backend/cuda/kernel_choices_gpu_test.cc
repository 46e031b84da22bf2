// Kernel choices on a GPU: a run that is continued has them again without the machine's cache, and they go before it; what does not fit or
// is refused is told and chosen anew. Checkpoint copies while work is recorded.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "ops/kernel_choices.h"
#include "support/temp_dir.h"
#include "support/test_device.h"

namespace hlat {
namespace {

std::unique_ptr<Backend> gpu_with_cache([[maybe_unused]] const std::string& cache) {
#ifdef HLAT_HAVE_CUDA
  if (cuda_device_count() > 0) return std::make_unique<CudaBackend>(CudaOptions{.cache_dir = cache});
#endif
  throw std::runtime_error("this build has no CUDA backend");
}

constexpr AttentionShape kShape{.batch = 1, .seq = 256, .heads = 4, .kv_heads = 2, .head_dim = 64};

// A process on a machine with a GPU: a backend and some memory of it.
class Process {
 public:
  explicit Process(const std::string& cache) : backend_(gpu_with_cache(cache)), device_(backend_->device()) {
    block_ = device_.allocate(2 * kBytes);
    data_ = Region(Purpose::saved, block_, kBytes);
    temp_ = Region(Purpose::temp, block_ + kBytes, kBytes);
    ops_ = backend_->make_ops(temp_);
  }
  ~Process() { device_.free(block_); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Backend& backend() { return *backend_; }
  Ops& ops() { return *ops_; }
  Tensor tensor(DType dtype, const Shape& shape) { return data_.alloc(dtype, shape, "t"); }
  KernelChoices choices() const { return parse_kernel_choices(backend_->kernel_choices()); }

  void infer() {
    const Scope scope(data_);
    const Tensor a = normal({512, 512}, 1), b = normal({512, 512}, 2), c = tensor(DType::bf16, {512, 512});
    const auto ops = backend_->make_inference_ops(temp_);
    ops->matmul(c, a, b, {});
    ops->finish();
  }

  // A product that is large enough to be measured, and attention both ways: the bits of all results.
  std::vector<uint16_t> compute() {
    const Scope scope(data_);
    const Tensor a = normal({512, 512}, 1), b = normal({512, 512}, 2), c = tensor(DType::bf16, {512, 512});
    ops_->matmul(c, a, b, {});
    const Tensor qkv = normal({kShape.tokens(), kShape.qkv_width()}, 3), dout = normal({kShape.tokens(), kShape.out_width()}, 4);
    const Tensor out = tensor(DType::bf16, dout.shape), dqkv = tensor(DType::bf16, qkv.shape);
    const Tensor lse = tensor(DType::f32, {kShape.batch, kShape.heads, kShape.seq});
    ops_->attention(out, lse, qkv, kShape);
    ops_->attention_bwd(dqkv, dout, out, lse, qkv, kShape);
    std::vector<uint16_t> bits;
    for (const Tensor& t : {c, out, dqkv}) {
      const size_t before = bits.size();
      bits.resize(before + static_cast<size_t>(t.numel()));
      device_.download(bits.data() + before, t);
    }
    return bits;
  }

 private:
  static constexpr size_t kBytes = size_t{64} << 20;
  Tensor normal(const Shape& shape, uint64_t stream) {
    const Tensor t = tensor(DType::bf16, shape);
    ops_->fill_normal(t, 1, {.seed = 7, .stream = stream});
    return t;
  }

  std::unique_ptr<Backend> backend_;
  Device& device_;
  std::byte* block_ = nullptr;
  Region data_, temp_;
  std::unique_ptr<Ops> ops_;
};

class KernelChoicesOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU: the kernel choices of one are not tested";
  }
  std::string cache(const std::string& name = "cache") const { return temp_.path(name); }
  static std::string file(const std::string& cache) { return cache + "/matmul_choices.txt"; }

  // Calls act on each choice whose call has these words.
  template <class Act>
  static void edit(KernelChoices& choices, const std::string& words, const Act& act) {
    for (auto& [device, libraries] : choices)
      for (auto& [library, calls] : libraries)
        for (auto& [call, kernel] : calls)
          if (call.find(words) != std::string::npos) act(library, call, kernel);
  }
  static std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }
  static bool has(const std::string& where, const std::string& what) { return where.find(what) != std::string::npos; }

 private:
  test::TempDir temp_;
};

TEST_F(KernelChoicesOnGpu, AResumeRepeatsTheBitsThoughTheCacheIsGone) {
  std::vector<uint16_t> bits;
  std::string record;
  {
    Process run(cache());
    bits = run.compute();
    record = run.backend().kernel_choices();
  }
  ASSERT_TRUE(std::filesystem::exists(file(cache()))) << "the product was to be measured";
  std::filesystem::remove_all(cache());
  Process resumed(cache());
  EXPECT_EQ(joined(resumed.backend().use_kernel_choices(record)), "3 kernel choices of the checkpoint used again");
  EXPECT_EQ(resumed.backend().kernel_choices(), record) << "also before they are met: the next save may come first";
  EXPECT_TRUE(resumed.compute() == bits);
  EXPECT_EQ(resumed.backend().kernel_choices(), record);
  EXPECT_EQ(joined(resumed.backend().take_kernel_notes()), "");
  EXPECT_FALSE(std::filesystem::exists(file(cache()))) << "something was measured again";
}

TEST_F(KernelChoicesOnGpu, InferenceMeasuresNothingAndIsNotInTheRecord) {
  Process run(cache());
  run.infer();
  EXPECT_EQ(run.backend().kernel_choices().find("512x512x512"), std::string::npos) << run.backend().kernel_choices();
  EXPECT_FALSE(std::filesystem::exists(file(cache())));
}

// Without a cache nothing is measured: the record has cuBLASLt's favourite, and the cache what was found to be faster, if anything was.
TEST_F(KernelChoicesOnGpu, TheRecordGoesBeforeTheCache) {
  Process(cache()).compute();
  Process run("");
  run.compute();
  const KernelChoices record = run.choices();
  Process resumed(cache());
  resumed.backend().use_kernel_choices(kernel_choices_text(record));
  resumed.compute();
  EXPECT_EQ(resumed.choices(), record);
}

// A product that cuBLASLt refused at its call, after proposing algorithms for it, is recorded so: the run that goes on has its bits.
TEST_F(KernelChoicesOnGpu, AProductStaysWithThePlainKernelOfTheRecord) {
  Process run(cache());
  run.compute();
  KernelChoices record = run.choices();
  edit(record, "512x512x512", [](const auto&, const auto&, std::string& kernel) {
    EXPECT_NE(kernel, "plain kernel");
    kernel = "plain kernel";
  });
  Process resumed(cache());
  resumed.backend().use_kernel_choices(kernel_choices_text(record));
  const std::vector<uint16_t> bits = resumed.compute();
  EXPECT_EQ(resumed.choices(), record);
  const std::string notes = joined(resumed.backend().take_kernel_notes());
  EXPECT_TRUE(has(notes, "stays with the plain kernel of the checkpoint")) << notes;
  Process again(cache());
  again.backend().use_kernel_choices(kernel_choices_text(record));
  EXPECT_TRUE(again.compute() == bits);
}

TEST_F(KernelChoicesOnGpu, AttentionIsComputedByWhoComputedItBefore) {
  Process run(cache());
  run.compute();
  KernelChoices record = run.choices();
  std::vector<std::string> attention;
  edit(record, "attention", [&](const auto&, const std::string& call, const auto&) { attention.push_back(call); });
  ASSERT_EQ(attention.size(), 2u) << "forward and backward: " << run.backend().kernel_choices();
  for (auto& [device, libraries] : record) {
    for (const std::string& call : attention) {
      for (auto& [library, calls] : libraries) calls.erase(call);
      libraries["own kernels"][call] = "own";
    }
    std::erase_if(libraries, [](const auto& library) { return library.second.empty(); });
  }
  Process resumed(cache());
  resumed.backend().use_kernel_choices(kernel_choices_text(record));
  resumed.compute();
  EXPECT_EQ(resumed.choices(), record);
  EXPECT_EQ(joined(resumed.backend().take_kernel_notes()), "");
}

TEST_F(KernelChoicesOnGpu, AlgorithmsAndEnginesThatAreNoneAreToldAndChosenAnew) {
  Process run(cache());
  const std::vector<uint16_t> bits = run.compute();
  const KernelChoices good = run.choices();
  for (const std::string& algorithm : {std::string(128, 'f'), std::string("no algorithm")}) {
    KernelChoices record = good;
    bool by_cudnn = false;
    edit(record, "512x512x512", [&](const auto&, const auto&, std::string& kernel) { kernel = algorithm; });
    edit(record, "attention forward", [&](const std::string& library, const auto&, std::string& kernel) {
      by_cudnn = library != "own kernels";
      if (by_cudnn) kernel = "eng999_k1=7";
    });
    Process resumed(cache());
    resumed.backend().use_kernel_choices(kernel_choices_text(record));
    EXPECT_TRUE(resumed.compute() == bits) << "the cache and cuDNN have them still";
    EXPECT_EQ(resumed.choices(), good);
    const std::string notes = joined(resumed.backend().take_kernel_notes());
    EXPECT_TRUE(has(notes, "refuses the algorithm of the checkpoint")) << notes;
    EXPECT_EQ(has(notes, "not the checkpoint's eng999_k1=7"), by_cudnn) << notes;
    EXPECT_TRUE(resumed.backend().take_kernel_notes().empty()) << "each is told once";
  }
}

TEST_F(KernelChoicesOnGpu, ChoicesOfAnotherDeviceAreToldAndIgnored) {
  Process run(cache());
  run.compute();
  const KernelChoices own = run.choices();
  ASSERT_EQ(own.size(), 1u);
  KernelChoices foreign = {{"another card", own.begin()->second}};
  edit(foreign, "512x512x512", [](const auto&, const auto&, std::string& kernel) { kernel = "plain kernel"; });
  Process resumed(cache());
  const std::string lines = joined(resumed.backend().use_kernel_choices(kernel_choices_text(foreign)));
  EXPECT_TRUE(has(lines, "made for another card")) << lines;
  EXPECT_TRUE(has(lines, "this device is " + own.begin()->first)) << lines;
  EXPECT_FALSE(has(lines, "used again")) << lines;
  resumed.compute();
  EXPECT_EQ(resumed.choices(), own);
  EXPECT_THROW(resumed.backend().use_kernel_choices("{"), Error);
}

// Another layout: its shapes are measured, and the log says so.
TEST_F(KernelChoicesOnGpu, ShapesThatTheRecordLacksAreTold) {
  Process run(cache());
  run.compute();
  KernelChoices record = run.choices();
  for (auto& [device, libraries] : record)
    for (auto& [library, calls] : libraries) calls = {{"another shape", "plain kernel"}};
  Process resumed(cache());
  resumed.backend().use_kernel_choices(kernel_choices_text(record));
  resumed.compute();
  const std::string notes = joined(resumed.backend().take_kernel_notes());
  EXPECT_TRUE(has(notes, "1 matmul shape not in the checkpoint's record")) << notes;
  EXPECT_TRUE(has(notes, "attention backward of 1 x 256 tokens, 4 heads of 64 on 2 kv heads, bf16: not in the checkpoint's record"))
      << notes;
}

class CopiesOnGpu : public KernelChoicesOnGpu {};

// As a save does it, from a thread of its own. Taking pinned memory there is allowed too, though it may stop the device for a moment.
TEST_F(CopiesOnGpu, RunWhileWorkIsRecorded) {
  Process run(cache());
  Device& device = run.backend().device();
  const std::unique_ptr<CopyStream> copies = device.make_copy_stream();
  const Tensor saved = run.tensor(DType::f32, {1 << 20}), worked = run.tensor(DType::f32, {1 << 20});
  run.ops().fill(saved, 3);
  run.ops().fill(worked, 1);
  std::byte* pinned = nullptr;
  const uint64_t after_fills = copies->mark();
  const auto recording = device.record([&] {
    run.ops().fill(worked, 2);
    std::thread([&] {
      pinned = copies->allocate_pinned(saved.bytes());
      copies->wait_for(after_fills);
      copies->fetch(pinned, saved.data, saved.bytes());
      copies->finish();
    }).join();
  });
  ASSERT_NE(recording, nullptr);
  const auto* fetched = reinterpret_cast<const float*>(pinned);
  EXPECT_TRUE(std::all_of(fetched, fetched + saved.numel(), [](float x) { return x == 3; }));
  std::thread copying([&] {
    for (int i = 0; i < 50; ++i) {
      copies->fetch(pinned, saved.data, saved.bytes());
      copies->finish();
    }
  });
  for (int i = 0; i < 50; ++i) recording->run();
  copying.join();
  std::vector<float> host(static_cast<size_t>(worked.numel()));
  device.download(host.data(), worked);
  EXPECT_TRUE(std::all_of(host.begin(), host.end(), [](float x) { return x == 2; })) << "the recording has its own work alone";
  EXPECT_TRUE(std::all_of(fetched, fetched + saved.numel(), [](float x) { return x == 3; }));
  copies->free_pinned(pinned);
}

TEST_F(CopiesOnGpu, AMarkInsideARecordingIsRefused) {
  Process run(cache());
  Device& device = run.backend().device();
  const std::unique_ptr<CopyStream> copies = device.make_copy_stream();
  EXPECT_THROW(device.record([&] { copies->mark(); }), CheckFailed);
  copies->wait_for(copies->mark());
  copies->finish();
}

}  // namespace
}  // namespace hlat
