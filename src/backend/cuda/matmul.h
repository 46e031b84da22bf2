// Matrix products. A plain kernel stands in for the library until that is part of the tree.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "ops/ops.h"

namespace hlat {

class CudaMatmul {
 public:
  CudaMatmul(cudaStream_t stream, std::string cache_dir);
  ~CudaMatmul();
  size_t scratch(const MatmulShape& s) const;
  void run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch);

 private:
  cudaStream_t stream_;
};

}  // namespace hlat
