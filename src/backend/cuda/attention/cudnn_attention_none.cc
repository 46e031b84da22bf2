// Stands in for cudnn_attention.cc where the cuDNN frontend was not found when hlat was built.
#include "backend/cuda/attention/cudnn_attention.h"

namespace hlat {

struct CudnnAttention::Library {};

CudnnAttention::CudnnAttention(cudaStream_t, bool) : describe_("without cuDNN: its frontend was not there when hlat was built") {}
CudnnAttention::~CudnnAttention() = default;
std::string CudnnAttention::refusal(const AttentionShape&, bool) { return describe_; }
std::string CudnnAttention::engine(const AttentionShape&, bool) { return {}; }
void CudnnAttention::prefer(Preferred) {}
std::optional<size_t> CudnnAttention::scratch(const AttentionShape&, DType, bool) { return {}; }
void CudnnAttention::forward(Tensor, Tensor, Tensor, const AttentionShape&, Tensor) { fail("attention {}", describe_); }
void CudnnAttention::backward(Tensor, Tensor, Tensor, Tensor, Tensor, const AttentionShape&, Tensor) { fail("attention {}", describe_); }

}  // namespace hlat
