// Which GPUs are used and who computes attention on them, from made-up facts.
#include "ops/gpu_facts.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "support/message_of.h"

namespace hlat {
namespace {

const GpuFacts kT4{.name = "T4", .major = 7, .minor = 5, .shared_bytes = 64 << 10};
const GpuFacts kA100{.name = "A100", .major = 8, .minor = 0, .shared_bytes = 163 << 10};
const GpuFacts kL4{.name = "L4", .major = 8, .minor = 9, .shared_bytes = 99 << 10};
const GpuFacts kH100{.name = "H100", .major = 9, .minor = 0, .shared_bytes = 227 << 10};
const GpuFacts kB200{.name = "B200", .major = 10, .minor = 0, .shared_bytes = 227 << 10};

TEST(GpuFacts, CodeRunsOnItsMajorCapabilityAndPtxOnNewerGpus) {
  const GpuCode code = parse_architectures("80-real,89-real,90");
  EXPECT_EQ(code.binary, (std::vector{80, 89, 90}));
  EXPECT_EQ(code.ptx, std::vector{90});
  for (const GpuFacts& gpu : {kA100, kL4, kH100, kB200}) EXPECT_EQ(why_not(gpu, code), "") << gpu.name;
  EXPECT_EQ(why_not(kT4, code), "T4 (sm_75) is below sm_80, which hlat's kernels need");
  EXPECT_EQ(why_not(kB200, parse_architectures("80-real,90-real")),
            "this hlat was built without code for B200 (sm_100); build it with CMAKE_CUDA_ARCHITECTURES=100");
  EXPECT_EQ(why_not(kA100, parse_architectures("80-virtual")), "");
  EXPECT_NE(why_not(kA100, parse_architectures("86-real")), "") << "newer code of the same major";
  EXPECT_EQ(why_not(kH100, parse_architectures("native")), "");
}

TEST(GpuFacts, GpusThatCannotRunAreLeftOut) {
  const GpuChoice choice = choose_gpus({kT4, kH100, kT4, kA100}, parse_architectures("80-real,90"));
  EXPECT_EQ(choice.usable, (std::vector{1, 3}));
  EXPECT_NE(choice.refused.find("GPU 0: T4 (sm_75)"), std::string::npos) << choice.refused;
  EXPECT_NE(choice.refused.find("GPU 2: T4 (sm_75)"), std::string::npos) << choice.refused;
}

// The machine of most developers: no driver, about which CUDA says the same as about one that is too old.
TEST(GpuFacts, AMachineWithoutADriverNeedsNoReason) {
  using Start = CudaAnswer::Start;
  EXPECT_EQ(why_no_gpus({.start = Start::ready, .count = 2}), "");
  EXPECT_EQ(why_no_gpus({.start = Start::no_gpu, .error = "no CUDA-capable device is detected", .driver_cuda = 13000}), "");
  EXPECT_EQ(why_no_gpus({.start = Start::old_driver, .error = "insufficient", .program_cuda = 13000}), "");
  EXPECT_EQ(why_no_gpus({.start = Start::failed, .error = "CUDA driver is a stub library", .program_cuda = 13000}), "");
}

TEST(GpuFacts, ADriverThatGivesNoAccessIsNamed) {
  using Start = CudaAnswer::Start;
  EXPECT_EQ(why_no_gpus({.start = Start::old_driver, .error = "insufficient", .driver_cuda = 12020, .program_cuda = 13000}),
            "the NVIDIA driver is too old: it is for CUDA 12.2, and this hlat was built with 13.0");
  EXPECT_EQ(why_no_gpus({.start = Start::failed, .error = "system not yet initialized", .driver_cuda = 13000, .program_cuda = 13000}),
            "CUDA does not start: system not yet initialized");
  EXPECT_EQ(why_no_gpus({.start = Start::old_driver, .error = "insufficient", .program_cuda = 13000, .kernel_module = true}),
            "the NVIDIA driver is loaded, but its library libcuda.so.1 cannot be (insufficient)");
}

AttentionCase of_head(int64_t head, bool backward) {
  return {.shape = {.batch = 1, .seq = 32768, .heads = 32, .kv_heads = 8, .head_dim = head}, .backward = backward};
}

TEST(GpuFacts, CudnnComputesWhatItTakesAndHopperTheBackward) {
  AttentionCase c = of_head(128, true);
  c.cudnn_scratch = 1 << 20;
  EXPECT_EQ(choose_attention(kA100, c), AttentionBy::cudnn);
  c.hopper = true;
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::hopper);
  c.backward = false;
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::cudnn);
  c.cudnn_scratch.reset();
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::own);
}

// The deterministic backward of cuDNN off Hopper keeps B H T T score gradients.
TEST(GpuFacts, ScratchThatGrowsWithTheSquareOfTheLengthGoesToTheOwnKernel) {
  AttentionCase c = of_head(128, true);
  c.cudnn_scratch = size_t{64} << 30;
  EXPECT_EQ(choose_attention(kA100, c), AttentionBy::own);
}

// A resume: who computed a shape in the run that is continued does so again, where this machine can.
TEST(GpuFacts, WhoComputedItBeforeComputesItAgain) {
  AttentionCase c = of_head(128, true);
  c.cudnn_scratch = 1 << 20;
  c.hopper = true;
  c.recorded = AttentionBy::own;
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::own);
  c.recorded = AttentionBy::cudnn;
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::cudnn);
  c.cudnn_scratch.reset();
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::hopper) << "without cuDNN";
  c.recorded = AttentionBy::hopper;
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::hopper);
  c.hopper = false;
  EXPECT_EQ(choose_attention(kH100, c), AttentionBy::own) << "a program without the Hopper kernel";
  AttentionCase large = of_head(160, true);
  large.cudnn_scratch = 1 << 20;
  large.recorded = AttentionBy::own;
  EXPECT_EQ(choose_attention(kL4, large), AttentionBy::cudnn) << "the own kernel does not fit there";
}

TEST(GpuFacts, HeadsThatNoKernelTakesAreRefusedByName) {
  EXPECT_EQ(choose_attention(kA100, of_head(256, true)), AttentionBy::own);
  EXPECT_EQ(choose_attention(kL4, of_head(256, false)), AttentionBy::own);
  EXPECT_EQ(choose_attention(kL4, of_head(128, true)), AttentionBy::own);
  const std::string small = message_of([] { choose_attention(kL4, of_head(160, true)); });
  EXPECT_NE(small.find("no attention backward for head size 160"), std::string::npos) << small;
  EXPECT_NE(small.find("L4 (sm_89)"), std::string::npos) << small;
  EXPECT_NE(small.find("shared memory"), std::string::npos) << small;
  const std::string large = message_of([] { choose_attention(kH100, of_head(320, false)); });
  EXPECT_NE(large.find("own kernels go up to 256"), std::string::npos) << large;
  AttentionCase taken = of_head(160, true);
  taken.cudnn_scratch = size_t{64} << 30;
  EXPECT_EQ(choose_attention(kL4, taken), AttentionBy::cudnn) << "large scratch is still better than nothing: the plan shows it";
}

TEST(GpuFacts, LibrariesAreThoseOfTheToolkitBuiltWith) {
  EXPECT_EQ(cuda_library_name("libcublasLt", 12), "libcublasLt.so.12");
  EXPECT_EQ(cuda_library_name("libcublasLt", 13), "libcublasLt.so.13");
}

}  // namespace
}  // namespace hlat
