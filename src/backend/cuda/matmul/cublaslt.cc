#include "backend/cuda/matmul/cublaslt.h"

#include <dlfcn.h>

#include "base/shared_library.h"

namespace hlat {

const CublasLt& CublasLt::get() {
  static const CublasLt table = [] {
    std::string why;
    const std::string file = cuda_library_name("libcublasLt", HLAT_CUDA_MAJOR);
    void* library = open_library(file.c_str(), HLAT_CUDA_LIBRARIES, why);
    if (library == nullptr) fail<UsageError>("the CUDA backend needs the cuBLASLt of CUDA {}: {}", HLAT_CUDA_MAJOR, why);
    CublasLt t;
    const auto find = [&](const char* symbol_name) {
      void* symbol = dlsym(library, symbol_name);
      if (symbol == nullptr) fail("libcublasLt has no {}", symbol_name);
      return symbol;
    };
#define HLAT_CUBLASLT_FIND(name) t.name = reinterpret_cast<decltype(t.name)>(find("cublasLt" #name));
    HLAT_CUBLASLT_FUNCTIONS(HLAT_CUBLASLT_FIND)
#undef HLAT_CUBLASLT_FIND
    return t;
  }();
  return table;
}

}  // namespace hlat
