#include "backend/cuda/matmul/matmul.h"

#include <algorithm>
#include <utility>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/matmul/matmul_plain.h"
#include "backend/cuda/matmul/matmul_problem.h"
#include "ops/gpu_scratch.h"

namespace hlat {

namespace {

constexpr const char* kPlainKernel = "plain kernel";
constexpr double kWorthMeasuring = 1 << 24;  // multiplications: less is over before a launch is

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  HLAT_CUDA(cudaGetDevice(&device));
  HLAT_CUDA(cudaGetDeviceProperties(&properties, device));
  return fmt::format("{}, {} multiprocessors", properties.name, properties.multiProcessorCount);
}

std::string version_of(size_t v) { return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100); }

struct Key {
  MatmulShape s;
  int64_t ldc, lda, ldb;
  uint32_t align_c, align_a, align_b;

  auto tied() const {
    return std::tie(s.m, s.n, s.k, s.trans_a, s.trans_b, s.accumulate, s.a, s.c, ldc, lda, ldb, align_c, align_a, align_b);
  }
  bool operator<(const Key& other) const { return tied() < other.tied(); }
  std::string str() const {
    return fmt::format("{}x{}x{} {}{}{} {} {} ld {} {} {} align {} {} {}", s.m, s.n, s.k, s.trans_a ? 't' : 'n', s.trans_b ? 't' : 'n',
                       s.accumulate ? " +=" : "", name_of(s.a), name_of(s.c), ldc, lda, ldb, align_c, align_a, align_b);
  }
};

struct Prepared {
  std::unique_ptr<MatmulProblem> problem;
  std::optional<MatmulChoice> choice;  // none: the plain kernel
  cublasLtMatmulAlgo_t algo{};
};

}  // namespace

struct CudaMatmul::Library {
  cudaStream_t stream;
  Use use;
  cublasLtHandle_t handle = nullptr;
  std::string machine, version;
  MatmulChoices choices;
  std::map<Key, Prepared> prepared;
  const Prepared* latest = nullptr;
  std::string latest_text = "nothing";
  int64_t measured = 0;
  KernelsByCall recorded;  // of the run that is continued
  std::vector<std::string> notes;
  int64_t unrecorded = 0;  // shapes that came and are not in the record

  Library(cudaStream_t on, std::string cache_dir, Use for_what)
      : stream(on),
        use(for_what),
        machine(device_name()),
        version(version_of(CublasLt::get().GetVersion())),
        choices(std::move(cache_dir)) {
    HLAT_CUBLASLT(CublasLt::get().Create(&handle));
  }
  ~Library() {
    prepared.clear();
    CublasLt::get().Destroy(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::string name() const { return "cuBLASLt " + version; }

  // Sets what the run that is continued used. False: the record does not have the call, or the library refuses the algorithm.
  bool take_recorded(const std::string& call, const MatmulProblem& problem, size_t workspace, std::optional<MatmulChoice>& choice) {
    const auto found = recorded.find(call);
    if (found == recorded.end()) {
      unrecorded += recorded.empty() ? 0 : 1;
      return false;
    }
    if (found->second == kPlainKernel) return true;
    choice = parse_algo(found->second);
    if (choice && problem.accepts(*choice, workspace)) return true;
    choice.reset();
    notes.push_back(fmt::format("matmul {}: {} refuses the algorithm of the checkpoint; another one is used", call, name()));
    return false;
  }

  std::optional<MatmulChoice> choose(const Key& key, const MatmulProblem& problem, const MatmulOperands& x) {
    const std::string call = key.str(), in_cache = fmt::format("{}|{}|{}", machine, name(), call);
    std::optional<MatmulChoice> given;
    if (take_recorded(call, problem, x.workspace_bytes, given)) return given;
    std::optional<MatmulChoice> stored = choices.find(in_cache);
    if (stored && problem.accepts(*stored, x.workspace_bytes)) return stored;
    const double work = static_cast<double>(key.s.m) * static_cast<double>(key.s.n) * static_cast<double>(key.s.k);
    if (work < kWorthMeasuring || !choices.on_disk() || is_recording(stream)) {
      const auto proposals = problem.candidates(x.workspace_bytes);
      return proposals.empty() ? std::nullopt : std::optional(proposals.front());
    }
    std::optional<MatmulChoice> best = measure(problem, x, key.s.accumulate, stream);
    ++measured;
    if (best && best->microseconds > 0) {
      MatmulChoice agreed = choices.add(in_cache, *best, stored.has_value());
      if (problem.accepts(agreed, x.workspace_bytes)) best = agreed;
    }
    return best;
  }

  Prepared& prepare(const MatmulShape& s, const MatmulOperands& x) {
    const auto ld = [](const Tensor& t) { return std::max(t.stride[0], t.dim(1)); };
    const Key key{s, ld(x.c), ld(x.a), ld(x.b), alignment_of(x.c), alignment_of(x.a), alignment_of(x.b)};
    const auto found = prepared.find(key);
    if (found != prepared.end()) return found->second;
    Prepared p;
    p.problem = std::make_unique<MatmulProblem>(handle, stream, s, x);
    p.choice = choose(key, *p.problem, x);
    if (p.choice) p.algo = algo_of(*p.choice);
    return prepared.emplace(key, std::move(p)).first->second;
  }
};

CudaMatmul::CudaMatmul(cudaStream_t stream, std::string cache_dir, Use use)
    : library_(std::make_unique<Library>(stream, use == Use::inference ? std::string() : std::move(cache_dir), use)) {}
CudaMatmul::~CudaMatmul() = default;

size_t CudaMatmul::scratch(const MatmulShape& s) const { return gpu_matmul_scratch(s); }

void CudaMatmul::run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) { run_add(c, a, b, c, s, scratch); }

void CudaMatmul::run_add(Tensor c, Tensor a, Tensor b, Tensor residual, const MatmulShape& s, Tensor scratch) {
  if (s.m == 0 || s.n == 0) return;
  HLAT_CHECK(s.a == s.b && (s.a == DType::bf16 || s.a == DType::f32) && (s.c == s.a || s.c == DType::f32), "matmul on CUDA: {} x {} to {}",
             name_of(s.a), name_of(s.b), name_of(s.c));
  if (residual.data != c.data && alignment_of(residual) != alignment_of(c)) {  // one description has to fit both
    HLAT_CUDA(cudaMemcpyAsync(c.data, residual.data, c.bytes(), cudaMemcpyDeviceToDevice, library_->stream));
    residual = c;
  }
  const MatmulOperands x{residual, a, b, scratch.data, scratch.defined() ? std::min(scratch.bytes(), this->scratch(s)) : 0};
  Prepared& p = library_->prepare(s, x);
  library_->latest = &p;
  if (p.choice) {
    const cublasStatus_t status = p.problem->call(p.algo, c.data, x);
    const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
    if (!refused) return HLAT_CUBLASLT(status);
    p.choice.reset();  // proposed, but not for these operands after all
  }
  if (residual.data != c.data) HLAT_CUDA(cudaMemcpyAsync(c.data, residual.data, c.bytes(), cudaMemcpyDeviceToDevice, library_->stream));
  HLAT_CUDA(plain_matmul(library_->stream, {c.data, a.data, b.data, s.m, s.n, s.k, c.stride[0], a.stride[0], b.stride[0], s.trans_a,
                                            s.trans_b, s.accumulate, s.a == DType::bf16, s.c == DType::bf16}));
}

std::string CudaMatmul::describe() const {
  const MatmulChoices& choices = library_->choices;
  std::string text = library();
  if (!choices.problem().empty()) return text + ", choices not kept: " + choices.problem();
  if (choices.on_disk() && choices.empty() && library_->recorded.empty())
    text += " (the first step times its algorithms, a few seconds per shape)";
  return text;
}

const std::string& CudaMatmul::latest() const {
  if (const Prepared* p = library_->latest) library_->latest_text = p->choice ? hlat::describe(*p->choice) : kPlainKernel;
  return library_->latest_text;
}

int64_t CudaMatmul::measured() const { return library_->measured; }

const std::string& CudaMatmul::gpu() const { return library_->machine; }

std::string CudaMatmul::library() const { return library_->name(); }

KernelsByLibrary CudaMatmul::kernels() const {
  KernelsByCall calls = library_->recorded;
  for (const auto& [key, p] : library_->prepared) calls[key.str()] = p.choice ? algo_text(*p.choice) : kPlainKernel;
  return {{library(), std::move(calls)}};
}

void CudaMatmul::use(const KernelsByLibrary& recorded) {
  const auto found = recorded.find(library());
  library_->recorded = found == recorded.end() ? KernelsByCall{} : found->second;
  library_->latest = nullptr;
  library_->prepared.clear();
}

std::vector<std::string> CudaMatmul::take_notes() {
  std::vector<std::string> notes = std::exchange(library_->notes, {});
  if (const int64_t n = std::exchange(library_->unrecorded, 0); n > 0)
    notes.push_back(fmt::format("{} matmul shape{} not in the checkpoint's record: chosen on this machine", n, n == 1 ? "" : "s"));
  return notes;
}

}  // namespace hlat
