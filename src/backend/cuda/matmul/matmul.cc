#include "backend/cuda/matmul/matmul.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/matmul/matmul_plain.h"
#include "backend/cuda/matmul/matmul_problem.h"
#include "base/format.h"
#include "ops/gpu_scratch.h"

namespace hlat {

namespace {

constexpr const char* kPlainKernel = "plain kernel";
constexpr double kWorthMeasuring = 1 << 24;  // multiplications: less is over before a launch is

double work_of(const MatmulKey& key) { return static_cast<double>(key.s.m) * static_cast<double>(key.s.n) * static_cast<double>(key.s.k); }

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  HLAT_CUDA(cudaGetDevice(&device));
  HLAT_CUDA(cudaGetDeviceProperties(&properties, device));
  return fmt::format("{}, {} multiprocessors", properties.name, properties.multiProcessorCount);
}

PlainType plain_type(DType t) {
  return t == DType::f8e4m3 ? PlainType::e4m3 : t == DType::f8e5m2 ? PlainType::e5m2 : t == DType::bf16 ? PlainType::bf16 : PlainType::f32;
}

// Memory is what a failure is often for want of. Where CUDA does not say how much there is, it has failed itself.
std::string status_text(cublasStatus_t status) {
  size_t free = 0, total = 0;
  const cudaError_t asked = cudaMemGetInfo(&free, &total);
  if (asked != cudaSuccess) cudaGetLastError();
  const std::string memory = asked == cudaSuccess ? fmt::format("with {} of the GPU's memory free", format_bytes(free))
                                                  : fmt::format("and CUDA says: {}", cudaGetErrorString(asked));
  return fmt::format("{} (status {}), {}", CublasLt::get().GetStatusName(status), static_cast<int>(status), memory);
}

std::string version_of(size_t v) { return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100); }

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
  std::map<MatmulKey, Prepared> prepared;
  const Prepared* latest = nullptr;
  std::string latest_text = "nothing";
  int64_t measured = 0;
  KernelsByCall recorded;  // of the run that is continued
  std::vector<std::string> notes;
  std::set<std::string> noted_once;
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
    if (found->second == kPlainKernel) return true;  // the bits of the run are those of it
    choice = parse_algo(found->second);
    if (choice && problem.accepts(*choice, workspace)) return true;
    choice.reset();
    notes.push_back(fmt::format("matmul {}: {} refuses the algorithm of the checkpoint; another one is used", call, name()));
    return false;
  }

  std::optional<MatmulChoice> choose(const MatmulKey& key, const MatmulProblem& problem, const MatmulOperands& x) {
    const std::string call = key.str(), in_cache = fmt::format("{}|{}|{}", machine, name(), call);
    std::optional<MatmulChoice> given;
    if (take_recorded(call, problem, x.workspace_bytes, given)) return given;
    std::optional<MatmulChoice> stored = choices.find(in_cache);
    if (stored && problem.accepts(*stored, x.workspace_bytes)) return stored;
    const MatmulProblem::Candidates proposed = problem.candidates(x.workspace_bytes);
    const bool searched = proposed.failed == CUBLAS_STATUS_SUCCESS;
    if (!searched && proposed.choices.empty()) fail("cuBLASLt: {} in the search for matmul {}", status_text(proposed.failed), call);
    if (!searched)
      notes.push_back(fmt::format("matmul {}: {} failed to propose algorithms: {}", call, name(), status_text(proposed.failed)));
    if (proposed.choices.empty()) return {};
    if (work_of(key) < kWorthMeasuring || !choices.on_disk() || is_recording(stream)) return proposed.choices.front();
    const Measured m = measure(proposed.choices, problem, x, key.s.accumulate, stream);
    ++measured;
    if (m.failures > 0)
      notes.push_back(fmt::format("matmul {}: {} of {} algorithms of {} failed when they were timed: {}", call, m.failures,
                                  proposed.choices.size(), name(), status_text(m.failed)));
    std::optional<MatmulChoice> best = m.best;
    if (best && best->microseconds > 0 && searched && m.failures == 0) {  // a choice among survivors is this run's alone
      MatmulChoice agreed = choices.add(in_cache, *best, stored.has_value());
      if (problem.accepts(agreed, x.workspace_bytes)) best = agreed;
    }
    return best;
  }

  Prepared& prepare(const MatmulShape& s, const MatmulOperands& x) {
    const MatmulKey key(s, x.c, x.a, x.b, x.fast_sums);
    const auto found = prepared.find(key);
    if (found != prepared.end()) return found->second;
    Prepared p;
    p.problem = std::make_unique<MatmulProblem>(handle, stream, s, x);
    p.choice = choose(key, *p.problem, x);
    if (p.choice)
      p.algo = algo_of(*p.choice);
    else
      note_plain(key);
    return prepared.emplace(key, std::move(p)).first->second;
  }

  // A loss that the user should know of, unless the product is small: of those, cuBLASLt refuses some of odd alignment.
  void note_plain(const MatmulKey& key) {
    if (!is_fp8(key.s.a) && work_of(key) < kWorthMeasuring) return;
    const auto found = recorded.find(key.str());
    const bool kept = found != recorded.end() && found->second == kPlainKernel;
    notes.push_back(kept ? fmt::format("matmul {}: stays with the plain kernel of the checkpoint, which is slow", key.str())
                         : fmt::format("matmul {}: {} does not take it; a plain kernel does, slowly", key.str(), name()));
  }

  // c = op(a) op(b), + x.c with s.accumulate, which may be c and is laid out as c.
  void multiply(const Tensor& c, const MatmulShape& s, MatmulOperands x) {
    const auto copy_residual = [&] {
      if (x.c.data != c.data) HLAT_CUDA(cudaMemcpyAsync(c.data, x.c.data, c.bytes(), cudaMemcpyDeviceToDevice, stream));
      x.c = c;
    };
    if (alignment_of(x.c) != alignment_of(c)) copy_residual();  // one description has to fit both
    Prepared& p = prepare(s, x);
    latest = &p;
    if (p.choice) {
      const cublasStatus_t status = p.problem->call(p.algo, c.data, x);
      if (status == CUBLAS_STATUS_SUCCESS) return;
      const MatmulKey key(s, x.c, x.a, x.b, x.fast_sums);
      if (!is_refusal(status)) fail("cuBLASLt: {} in matmul {}", status_text(status), key.str());
      p.choice.reset();  // proposed, but not for these operands after all
      note_plain(key);
    }
    copy_residual();
    HLAT_CUDA(plain_matmul(stream, {c.data, x.a.data, x.b.data, s.m, s.n, s.k, c.stride[0], x.a.stride[0], x.b.stride[0], s.trans_a,
                                    s.trans_b, s.accumulate, plain_type(s.a), plain_type(s.b), plain_type(s.c), x.unscale_a, x.unscale_b}));
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
  library_->multiply(c, s, {residual, a, b, scratch.data, scratch.defined() ? std::min(scratch.bytes(), this->scratch(s)) : 0});
}

void CudaMatmul::run_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool fast_sums,
                         Tensor scratch) {
  if (s.m == 0 || s.n == 0) return;
  HLAT_CHECK(is_fp8(s.a) && is_fp8(s.b) && s.trans_b && !s.trans_a && (s.c == DType::bf16 || s.c == DType::f32),
             "matmul of FP8 on CUDA: {} x {} to {}", name_of(s.a), name_of(s.b), name_of(s.c));
  library_->multiply(c, s,
                     {.c = residual,
                      .a = a.values,
                      .b = b.values,
                      .workspace = scratch.data,
                      .workspace_bytes = scratch.defined() ? std::min(scratch.bytes(), this->scratch(s)) : 0,
                      .unscale_a = a.scale.as<const float>() + kFp8Inverse,
                      .unscale_b = b.scale.as<const float>() + kFp8Inverse,
                      .fast_sums = fast_sums});
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

void CudaMatmul::note_once(const std::string& line) {
  if (library_->noted_once.insert(line).second) library_->notes.push_back(line);
}

std::vector<std::string> CudaMatmul::take_notes() {
  std::vector<std::string> notes = std::exchange(library_->notes, {});
  if (const int64_t n = std::exchange(library_->unrecorded, 0); n > 0)
    notes.push_back(fmt::format("{} matmul shape{} not in the checkpoint's record: chosen on this machine", n, n == 1 ? "" : "s"));
  return notes;
}

}  // namespace hlat
