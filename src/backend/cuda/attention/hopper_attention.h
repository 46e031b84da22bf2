// Attention backward for Hopper GPUs: bf16, head sizes 64 and 128, any length and grouping. Deterministic (ADR 0009).
// Built for sm_90a alone (cmake/cuda.cmake).
#pragma once

#include "backend/cuda/attention/attention_kernel.h"

namespace hlat {

bool hopper_attention_takes(int64_t head_dim);  // and whether the current device is a Hopper
size_t hopper_attention_scratch(int64_t batch, int64_t seq, int64_t heads, int64_t head_dim);
// `scratch` replaces x.delta. rope: null, or the (T, E) table of the inverse RoPE of dq and dk.
cudaError_t hopper_attention_bwd(cudaStream_t stream, const OwnAttention& x, const float* rope, void* scratch);

}  // namespace hlat
