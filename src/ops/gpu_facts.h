// What is known of a GPU and of the program's GPU code, as plain data: who can run here, and who computes attention, are then functions
// that need no GPU. The cuda backend fills the facts in; `runtime` and that backend ask.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace hlat {

struct GpuFacts {
  std::string name;
  int major = 0, minor = 0;         // compute capability
  size_t shared_bytes = 99 * 1024;  // of shared memory that a block may ask for
};

// A GPU of which only the compute capability is known: 90 for sm_90.
GpuFacts gpu_of_capability(std::string name, int capability);

// Whether its tensor cores multiply FP8 (Ada, Hopper and later).
inline bool multiplies_fp8(const GpuFacts& gpu) { return 10 * gpu.major + gpu.minor >= 89; }

// What the program's GPU code was built for: CMake's list of architectures, with commas: "80-real,90". Code for sm_XY runs on GPUs of the
// same major capability from XY on, PTX on all from XY on.
struct GpuCode {
  std::vector<int> binary, ptx;
};
GpuCode parse_architectures(const std::string& list);

// Why this program has no kernels for a GPU; empty: it has.
std::string why_not(const GpuFacts& gpu, const GpuCode& code);

// What CUDA answers when it is asked for the machine's GPUs.
struct CudaAnswer {
  enum class Start { ready, no_gpu, old_driver, failed };
  Start start = Start::ready;
  int count = 0;                          // of GPUs
  std::string error = {};                 // CUDA's words, where it failed
  int driver_cuda = 0, program_cuda = 0;  // versions, 13000 for 13.0; driver_cuda is 0 where no driver's library can be loaded
  bool kernel_module = false;             // of the driver
};

// Why CUDA gives access to no GPU, in words for a log; empty: there is none to expect. A machine without a driver answers `old_driver`.
std::string why_no_gpus(const CudaAnswer& answer);

// Which of the machine's GPUs to use, in order; `refused` says which are left out and why, in words for a log.
struct GpuChoice {
  std::vector<int> usable;
  std::string refused;
};
GpuChoice choose_gpus(const std::vector<GpuFacts>& gpus, const GpuCode& code);

// Who computes attention of a shape on a GPU.
enum class AttentionBy { hopper, cudnn, own };

struct AttentionCase {
  AttentionShape shape;
  DType dtype = DType::bf16;
  bool backward = false;
  bool hopper = false;                       // our Hopper kernel takes it
  std::optional<size_t> cudnn_scratch = {};  // nullopt: cuDNN does not take it
  std::optional<AttentionBy> recorded = {};  // who computed it in the run that is continued, and does again where that is possible
};

// UsageError, with the head size and the GPU, where nobody does. Our plain kernel takes over from cuDNN where that would keep the score
// gradients of whole sequences in scratch: above kLargestScratch.
inline constexpr size_t kLargestScratch = size_t{12} << 30;
AttentionBy choose_attention(const GpuFacts& gpu, const AttentionCase& c);

}  // namespace hlat
