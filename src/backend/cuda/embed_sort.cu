#include "backend/cuda/embed_sort.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "backend/cuda/cuda_check.h"

namespace hlat {

// Enough for keys of any width; it depends on their number alone.
size_t sort_scratch(int64_t n) {
  size_t bytes = 0;
  const uint32_t* from = nullptr;
  uint32_t* to = nullptr;
  HLAT_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, from, to, from, to, static_cast<int>(n)));
  return bytes;
}

void sort_pairs(void* scratch, size_t scratch_bytes, KeyValue from, KeyValue to, int64_t n, uint32_t largest, cudaStream_t stream) {
  HLAT_CUDA(cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, static_cast<const uint32_t*>(from.keys), to.keys,
                                            static_cast<const uint32_t*>(from.values), to.values, static_cast<int>(n), 0,
                                            static_cast<int>(std::bit_width(largest)), stream));
}

}  // namespace hlat
