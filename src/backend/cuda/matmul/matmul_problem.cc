#include "backend/cuda/matmul/matmul_problem.h"

#include <algorithm>

namespace hlat {

namespace {

cudaDataType_t type_of(DType t) {
  switch (t) {
    case DType::f32: return CUDA_R_32F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f8e4m3: return CUDA_R_8F_E4M3;
    case DType::f8e5m2: return CUDA_R_8F_E5M2;
    default: fail("cuBLASLt: products of {} are not made here", name_of(t));
  }
}

template <class T>
T config(const CublasLt& lt, const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  size_t written = 0;
  lt.MatmulAlgoConfigGetAttribute(&algo, attribute, &value, sizeof(value), &written);
  return value;
}

template <class T>
void set_config(const CublasLt& lt, cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t attribute, T value) {
  lt.MatmulAlgoConfigSetAttribute(&algo, attribute, &value, sizeof(value));
}

// Parts of a sum are added in f32 in a step of their own, or there are none. The other schemes add in the type of c, in place.
bool deterministic(const CublasLt& lt, const cublasLtMatmulAlgo_t& algo) {
  const auto scheme = config<uint32_t>(lt, algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  return scheme == CUBLASLT_REDUCTION_SCHEME_NONE || scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

MatmulChoice choice_of(const cublasLtMatmulAlgo_t& algo, size_t workspace) {
  MatmulChoice choice;
  std::memcpy(choice.algo.data(), &algo, sizeof(algo));
  choice.workspace = workspace;
  return choice;
}

class Preference {
 public:
  explicit Preference(const CublasLt& lt) : lt_(lt) { HLAT_CUBLASLT(lt.MatmulPreferenceCreate(&preference_)); }
  ~Preference() { lt_.MatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    HLAT_CUBLASLT(lt_.MatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value)));
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  const CublasLt& lt_;
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

std::string describe(const MatmulChoice& choice) {
  const CublasLt& lt = CublasLt::get();
  const cublasLtMatmulAlgo_t algo = algo_of(choice);
  return fmt::format(
      "algorithm {}, tile {}, stages {}, split {}, swizzle {}, cluster {}, inner {}, option {}",
      config<int32_t>(lt, algo, CUBLASLT_ALGO_CONFIG_ID), config<uint32_t>(lt, algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
      config<uint32_t>(lt, algo, CUBLASLT_ALGO_CONFIG_STAGES_ID), config<int32_t>(lt, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      config<uint32_t>(lt, algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING), config<uint16_t>(lt, algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
      config<uint16_t>(lt, algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID), config<uint32_t>(lt, algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION));
}

MatmulProblem::MatmulProblem(cublasLtHandle_t handle, cudaStream_t stream, const MatmulShape& s, const MatmulOperands& x)
    : lt_(CublasLt::get()),
      handle_(handle),
      stream_(stream),
      accumulate_(s.accumulate),
      fp8_(is_fp8(s.a)),
      alignment_{alignment_of(x.c), alignment_of(x.a), alignment_of(x.b)} {
  const cublasOperation_t op_a = s.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = s.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  HLAT_CUBLASLT(lt_.MatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  HLAT_CUBLASLT(lt_.MatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof(op_b)));
  HLAT_CUBLASLT(lt_.MatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof(op_a)));
  const auto layout = [&](cublasLtMatrixLayout_t& to, const Tensor& t) {
    // A single row may have any stride.
    HLAT_CUBLASLT(lt_.MatrixLayoutCreate(&to, type_of(t.dtype), static_cast<uint64_t>(t.dim(1)), static_cast<uint64_t>(t.dim(0)),
                                         std::max(t.stride[0], t.dim(1))));
  };
  layout(a_, x.a);
  layout(b_, x.b);
  layout(c_, x.c);
  if (!fp8_) return;
  const int8_t fast = x.fast_sums ? 1 : 0;
  HLAT_CUBLASLT(lt_.MatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast)));
  set_scales(x);
}

// The description holds the addresses, which differ between calls that share it.
void MatmulProblem::set_scales(const MatmulOperands& x) const {
  HLAT_CUBLASLT(lt_.MatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &x.unscale_b, sizeof(x.unscale_b)));
  HLAT_CUBLASLT(lt_.MatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &x.unscale_a, sizeof(x.unscale_a)));
}

MatmulProblem::~MatmulProblem() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, c_})
    if (layout != nullptr) lt_.MatrixLayoutDestroy(layout);
  if (desc_ != nullptr) lt_.MatmulDescDestroy(desc_);
}

cublasStatus_t MatmulProblem::call(const cublasLtMatmulAlgo_t& algo, void* d, const MatmulOperands& x) const {
  const float alpha = 1, beta = accumulate_ ? 1.0f : 0.0f;
  if (fp8_) set_scales(x);
  return lt_.Matmul(handle_, desc_, &alpha, x.b.data, b_, x.a.data, a_, &beta, x.c.data, c_, d, c_, &algo, x.workspace, x.workspace_bytes,
                    stream_);
}

bool MatmulProblem::accepts(MatmulChoice& choice, size_t workspace) const {
  const cublasLtMatmulAlgo_t algo = algo_of(choice);
  cublasLtMatmulHeuristicResult_t result{};
  if (lt_.MatmulAlgoCheck(handle_, desc_, b_, a_, c_, c_, &algo, &result) != CUBLAS_STATUS_SUCCESS) return false;
  choice.workspace = result.workspaceSize;
  return result.workspaceSize <= workspace && deterministic(lt_, algo);
}

MatmulProblem::Candidates MatmulProblem::candidates(size_t workspace) const {
  constexpr int kMany = 24;
  Candidates found;
  std::vector<MatmulChoice>& out = found.choices;
  for (const size_t limit : {workspace, size_t{0}}) {
    Preference preference(lt_);
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(limit));
    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_[2]);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_[1]);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_[0]);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_[0]);
    std::array<cublasLtMatmulHeuristicResult_t, kMany> results{};
    int count = 0;
    const cublasStatus_t status =
        lt_.MatmulAlgoGetHeuristic(handle_, desc_, b_, a_, c_, c_, preference.get(), kMany, results.data(), &count);
    if (status != CUBLAS_STATUS_SUCCESS) {
      if (!is_refusal(status)) found.failed = status;
      continue;
    }
    for (int i = 0; i < count; ++i) {
      const auto& r = results[static_cast<size_t>(i)];
      const MatmulChoice choice = choice_of(r.algo, r.workspaceSize);
      const bool known = std::any_of(out.begin(), out.end(), [&](const MatmulChoice& c) { return c.algo == choice.algo; });
      if (r.state == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= workspace && deterministic(lt_, r.algo) && !known) out.push_back(choice);
    }
  }
  return found;
}

std::vector<MatmulChoice> MatmulProblem::neighbours(const MatmulChoice& choice, size_t workspace) const {
  std::vector<MatmulChoice> out;
  const auto consider = [&](const cublasLtMatmulAlgo_t& algo) {
    MatmulChoice c = choice_of(algo, 0);
    if (c.algo != choice.algo && accepts(c, workspace)) out.push_back(c);
  };
  const cublasLtMatmulAlgo_t base = algo_of(choice);
  for (uint32_t swizzle = 0; swizzle < 4; ++swizzle) {
    cublasLtMatmulAlgo_t algo = base;
    set_config(lt_, algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle);
    consider(algo);
  }
  for (uint16_t cluster = CUBLASLT_CLUSTER_SHAPE_1x1x1; cluster <= CUBLASLT_CLUSTER_SHAPE_2x4x1; ++cluster) {
    cublasLtMatmulAlgo_t algo = base;
    set_config(lt_, algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, cluster);
    consider(algo);
  }
  for (const int32_t split : {1, 2, 3, 4, 6, 8}) {
    cublasLtMatmulAlgo_t algo = base;
    set_config(lt_, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, split);
    set_config(lt_, algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
               static_cast<uint32_t>(split == 1 ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    consider(algo);
  }
  return out;
}

}  // namespace hlat
