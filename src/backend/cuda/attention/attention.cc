#include "backend/cuda/attention/attention.h"

#include <utility>

#include "backend/cuda/attention/attention_kernel.h"
#include "backend/cuda/attention/hopper_attention.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_check.h"
#include "base/format.h"

namespace hlat {

namespace {

constexpr const char* kHopper = "Hopper";
constexpr const char* kOwn = "own";

OwnAttention own_call(const AttentionShape& s, const Tensor& qkv, const Tensor& out, const Tensor& lse, const Tensor& dout = {},
                      const Tensor& dqkv = {}) {
  HLAT_CHECK(qkv.dtype == DType::bf16 || qkv.dtype == DType::f32, "attention on CUDA: {}", qkv.str());
  return {.batch = s.batch,
          .seq = s.seq,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .bf16 = qkv.dtype == DType::bf16,
          .qkv = qkv.data,
          .out = out.data,
          .lse = lse.as<float>(),
          .dout = dout.data,
          .dqkv = dqkv.data,
          .delta = nullptr};
}

GpuFacts facts_of_current_gpu() {
  int device = 0;
  HLAT_CUDA(cudaGetDevice(&device));
  return gpu_facts(device);
}

}  // namespace

std::string AttentionCall::str() const {
  return fmt::format("attention {} of {} x {} tokens, {} heads of {} on {} kv heads, {}", backward ? "backward" : "forward", shape.batch,
                     shape.seq, shape.heads, shape.head_dim, shape.kv_heads, name_of(dtype));
}

CudaAttention::CudaAttention(cudaStream_t stream, bool deterministic, Use use)
    : stream_(stream),
      use_(use),
      gpu_(facts_of_current_gpu()),
      cudnn_(use == Use::own ? nullptr : std::make_unique<CudnnAttention>(stream, deterministic)) {
  if (cudnn_ == nullptr) return;
  cudnn_->prefer([this](const AttentionShape& s, bool backward) {
    const std::optional<Kernel> kernel = recorded({s, DType::bf16, backward});
    return kernel && kernel->library == cudnn_->library() ? kernel->name : "";
  });
}
CudaAttention::~CudaAttention() = default;

std::optional<size_t> CudaAttention::cudnn_scratch(const AttentionCall& call) const {
  return cudnn_ == nullptr ? std::nullopt : cudnn_->scratch(call.shape, call.dtype, call.backward);
}

bool CudaAttention::by_hopper(const AttentionCall& call) const {
  return call.backward && use_ == Use::automatic && call.dtype == DType::bf16 && hopper_attention_takes(call.shape.head_dim);
}

CudaAttention::Decision& CudaAttention::decision(const AttentionCall& call) const {
  const auto found = decided_.find(call);
  return found != decided_.end() ? found->second : decided_.emplace(call, Decision{.by = decide(call)}).first->second;
}

AttentionBy CudaAttention::decide(const AttentionCall& call) const {
  const std::optional<AttentionBy> recorded = recorded_by(call);
  const bool hopper = by_hopper(call);
  if (hopper && recorded.value_or(AttentionBy::hopper) == AttentionBy::hopper)
    return AttentionBy::hopper;  // without a question that would build cuDNN's plan
  return choose_attention(gpu_, {.shape = call.shape,
                                 .dtype = call.dtype,
                                 .backward = call.backward,
                                 .hopper = hopper,
                                 .cudnn_scratch = cudnn_scratch(call),
                                 .recorded = recorded});
}

AttentionBy CudaAttention::make(const AttentionCall& call) {
  Decision& d = decision(call);
  if (!std::exchange(d.made, true) && !recorded_.empty()) note(call);
  return d.by;
}

// Where the first call of a shape is computed otherwise than in the run that is continued.
void CudaAttention::note(const AttentionCall& call) {
  const std::optional<Kernel> before = recorded(call);
  const Kernel now = kernel(call);
  if (!before)
    notes_.push_back(fmt::format("{}: not in the checkpoint's record; {} of {} computes it", call.str(), now.name, now.library));
  else if (*before != now)
    notes_.push_back(fmt::format("{}: {} of {} computes it, not the checkpoint's {} of {}", call.str(), now.name, now.library, before->name,
                                 before->library));
}

size_t CudaAttention::scratch(const AttentionShape& s, DType dtype, bool backward) const {
  const AttentionBy by = chosen({s, dtype, backward});
  if (by == AttentionBy::hopper) return hopper_attention_scratch(s.batch, s.seq, s.heads, s.head_dim);
  if (by == AttentionBy::cudnn) return *cudnn_scratch({s, dtype, backward});
  return own_attention_scratch(s.batch, s.seq, s.heads, backward);
}

void CudaAttention::forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch) {
  if (make({s, qkv.dtype, false}) == AttentionBy::cudnn) return cudnn_->forward(out, lse, qkv, s, scratch);
  HLAT_CUDA(own_attention(stream_, own_call(s, qkv, out, lse)));
}

void CudaAttention::backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch,
                             Tensor rope) {
  const AttentionBy by = make({s, qkv.dtype, true});
  if (by == AttentionBy::hopper)
    return HLAT_CUDA(hopper_attention_bwd(stream_, own_call(s, qkv, out, lse, dout, dqkv), rope.as<float>(), scratch.data));
  HLAT_CHECK(!rope.defined(), "attention_bwd on CUDA: no fused inverse RoPE for {}", dqkv.str());
  if (by == AttentionBy::cudnn) return cudnn_->backward(dqkv, dout, out, lse, qkv, s, scratch);
  OwnAttention call = own_call(s, qkv, out, lse, dout, dqkv);
  call.delta = scratch.as<float>();
  HLAT_CUDA(own_attention_bwd(stream_, call));
}

std::string CudaAttention::describe() const {
  std::string text;
  if (cudnn_ == nullptr)
    text = "own kernels";
  else if (!cudnn_->usable())
    text = "own kernels (" + cudnn_->describe() + ")";
  else
    text = cudnn_->describe() + (use_ == Use::automatic && hopper_attention_takes(64) ? " and own attention backward" : "");
  for (const auto& [call, by] : decided_) text += fmt::format("\n{}: {}", call.str(), describe(call.shape, call.dtype, call.backward));
  return text;
}

std::string CudaAttention::describe(const AttentionShape& s, DType dtype, bool backward) const {
  switch (chosen({s, dtype, backward})) {
    case AttentionBy::hopper: return kHopper;
    case AttentionBy::cudnn: return "cuDNN";
    case AttentionBy::own: break;
  }
  if (cudnn_ == nullptr || dtype != DType::bf16) return kOwn;
  const std::string refusal = cudnn_->refusal(s, backward);
  if (!refusal.empty()) return "own: " + refusal;
  const bool as_before = recorded_by({s, dtype, backward}) == AttentionBy::own;
  return "own: " +
         (as_before ? "as in the checkpoint's run" : "cuDNN would need more than " + format_bytes(kLargestScratch) + " of scratch");
}

std::vector<std::string> CudaAttention::libraries() const {
  std::vector<std::string> names = {std::string(kOwnKernels)};
  if (cudnn_ != nullptr && cudnn_->usable()) names.push_back(cudnn_->library());
  return names;
}

CudaAttention::Kernel CudaAttention::kernel(const AttentionCall& call) const {
  switch (chosen(call)) {
    case AttentionBy::hopper: return {std::string(kOwnKernels), kHopper};
    case AttentionBy::cudnn: return {cudnn_->library(), cudnn_->engine(call.shape, call.backward)};
    case AttentionBy::own: break;
  }
  return {std::string(kOwnKernels), kOwn};
}

std::optional<CudaAttention::Kernel> CudaAttention::recorded(const AttentionCall& call) const {
  const std::string name = recorded_.empty() ? "" : call.str();
  for (const auto& [library, calls] : recorded_)
    if (const auto found = calls.find(name); found != calls.end()) return Kernel{library, found->second};
  return {};
}

std::optional<AttentionBy> CudaAttention::recorded_by(const AttentionCall& call) const {
  const std::optional<Kernel> kernel = recorded(call);
  if (!kernel) return {};
  if (kernel->library != kOwnKernels) return AttentionBy::cudnn;
  if (kernel->name == kHopper) return AttentionBy::hopper;
  return kernel->name == kOwn ? std::optional(AttentionBy::own) : std::nullopt;
}

KernelsByLibrary CudaAttention::kernels() const {
  KernelsByLibrary all = recorded_;
  for (const auto& [call, decision] : decided_) {
    if (!decision.made) continue;
    for (auto& [library, calls] : all) calls.erase(call.str());
    const Kernel k = kernel(call);
    all[k.library][call.str()] = k.name;
  }
  std::erase_if(all, [](const auto& of_library) { return of_library.second.empty(); });
  return all;
}

std::vector<std::string> CudaAttention::use(const KernelsByLibrary& recorded) {
  recorded_.clear();
  for (const std::string& library : libraries())
    if (const auto found = recorded.find(library); found != recorded.end()) recorded_.insert(*found);
  std::vector<std::string> lines;
  for (const auto& [call, decision] : decided_) {
    const std::optional<Kernel> wanted = this->recorded(call);
    if (wanted && *wanted != kernel(call))
      lines.push_back(
          fmt::format("{}: planned with {} before the checkpoint's kernel {} was known", call.str(), kernel(call).name, wanted->name));
  }
  return lines;
}

std::vector<std::string> CudaAttention::take_notes() { return std::exchange(notes_, {}); }

}  // namespace hlat
