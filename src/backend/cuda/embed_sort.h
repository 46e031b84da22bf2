// The stable sort behind embed_bwd. Apart, because the library's headers take long to compile.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace hlat {

struct KeyValue {
  uint32_t* keys;
  uint32_t* values;
};

size_t sort_scratch(int64_t n);
// Pairs in ascending order of keys, all at most `largest`; equal keys keep their order.
void sort_pairs(void* scratch, size_t scratch_bytes, KeyValue from, KeyValue to, int64_t n, uint32_t largest, cudaStream_t stream);

}  // namespace hlat
