#include "ops/gpu_facts.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/format.h"
#include "ops/attention_shared.h"

namespace hlat {

namespace {

constexpr int kLeastCapability = 80;  // bf16 on tensor cores, asynchronous copies

std::string card(const GpuFacts& gpu) { return fmt::format("{} (sm_{}{})", gpu.name, gpu.major, gpu.minor); }

}  // namespace

GpuFacts gpu_of_capability(std::string name, int capability) {
  const size_t kib = capability == 90 ? 227 : capability == 80 ? 163 : 99;
  return {.name = std::move(name), .major = capability / 10, .minor = capability % 10, .shared_bytes = kib * 1024};
}

GpuCode parse_architectures(const std::string& list) {
  GpuCode code;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) {
    const size_t digits = item.find_first_not_of("0123456789");
    if (digits == 0 || item.empty()) continue;  // "native", "all": what they stand for was decided by the compiler
    const int number = std::stoi(item.substr(0, digits));
    if (item.find("-virtual") == std::string::npos) code.binary.push_back(number);
    if (item.find("-real") == std::string::npos) code.ptx.push_back(number);
  }
  if (code.binary.empty() && code.ptx.empty()) code.ptx.push_back(kLeastCapability);
  return code;
}

std::string why_not(const GpuFacts& gpu, const GpuCode& code) {
  const int capability = 10 * gpu.major + gpu.minor;
  if (capability < kLeastCapability) return fmt::format("{} is below sm_{}, which hlat's kernels need", card(gpu), kLeastCapability);
  const bool binary = std::any_of(code.binary.begin(), code.binary.end(), [&](int a) { return a / 10 == gpu.major && a <= capability; });
  const bool ptx = std::any_of(code.ptx.begin(), code.ptx.end(), [&](int a) { return a <= capability; });
  return binary || ptx
             ? ""
             : fmt::format("this hlat was built without code for {}; build it with CMAKE_CUDA_ARCHITECTURES={}", card(gpu), capability);
}

std::string why_no_gpus(const CudaAnswer& answer) {
  using Start = CudaAnswer::Start;
  if (answer.start == Start::ready || answer.start == Start::no_gpu) return "";
  if (answer.driver_cuda == 0)
    return answer.kernel_module ? "the NVIDIA driver is loaded, but its library libcuda.so.1 cannot be (" + answer.error + ")" : "";
  if (answer.start == Start::failed) return "CUDA does not start: " + answer.error;
  const auto version = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
  return fmt::format("the NVIDIA driver is too old: it is for CUDA {}, and this hlat was built with {}", version(answer.driver_cuda),
                     version(answer.program_cuda));
}

GpuChoice choose_gpus(const std::vector<GpuFacts>& gpus, const GpuCode& code) {
  GpuChoice choice;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const std::string why = why_not(gpus[i], code);
    if (why.empty())
      choice.usable.push_back(static_cast<int>(i));
    else
      choice.refused += fmt::format("{}GPU {}: {}", choice.refused.empty() ? "" : "; ", i, why);
  }
  return choice;
}

AttentionBy choose_attention(const GpuFacts& gpu, const AttentionCase& c) {
  const int64_t head = c.shape.head_dim;
  const bool fits = head <= kOwnAttentionMaxHead && own_attention_shared(head, c.backward) <= gpu.shared_bytes;
  if (c.recorded == AttentionBy::own && fits) return AttentionBy::own;
  if (c.recorded == AttentionBy::cudnn && c.cudnn_scratch) return AttentionBy::cudnn;
  if (c.backward && c.hopper) return AttentionBy::hopper;
  if (c.cudnn_scratch && (*c.cudnn_scratch <= kLargestScratch || !fits)) return AttentionBy::cudnn;
  if (fits) return AttentionBy::own;
  const std::string why = head > kOwnAttentionMaxHead
                              ? fmt::format("own kernels go up to {}", kOwnAttentionMaxHead)
                              : fmt::format("the own kernel needs {} of shared memory and a block has {}",
                                            format_bytes(own_attention_shared(head, c.backward)), format_bytes(gpu.shared_bytes));
  fail<UsageError>(
      "no attention {} for head size {} (model.hidden / model.heads) in {} on {}: {}, and cuDNN does not take it; use more "
      "heads, or device.backend=cpu",
      c.backward ? "backward" : "forward", head, name_of(c.dtype), card(gpu), why);
}

}  // namespace hlat
