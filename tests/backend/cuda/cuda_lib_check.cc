// Checks the CUDA matmul and attention against double references on random data, and times them at the shapes of a training step.
//   cuda_lib_check [check] [bench] [attention] [matmul] [own] [cache=DIR]     all by default; exit code 1 when anything is wrong
// own: only our own kernels at small shapes, for compute-sanitizer. cache: where the choices of matmul algorithms are kept.
// A row of the matmul table: the measured choice beside the library's own favourite, which is what a framework runs.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "backend/cuda/attention/attention.h"
#include "backend/cuda/cuda_check.h"
#include "backend/cuda/gpu_case.h"
#include "backend/cuda/matmul/matmul.h"
#include "backend/cuda/matmul/matmul_plain.h"
#include "backend/cuda/matmul/matmul_problem.h"

namespace hlat {
namespace {

struct Model {
  const char* name;
  int64_t hidden, heads, kv_heads, ffn, vocab, seq, batch;
};
constexpr Model kModels[] = {{"hlat-7b", 4096, 32, 32, 11008, 32000, 4096, 1},
                             {"llama-1b", 2048, 32, 4, 5632, 32000, 4096, 8},
                             {"llama-134m", 768, 12, 12, 2048, 32000, 1024, 32}};

// Milliseconds of the measured choice and of the algorithm cuBLASLt ranks first.
std::vector<double> choice_and_favourite(Gpu& gpu, CudaMatmul& matmul, const MatmulCase& c) {
  static cublasLtHandle_t handle = nullptr;
  if (handle == nullptr) HLAT_CUBLASLT(CublasLt::get().Create(&handle));
  const MatmulOperands x{c.c, c.a, c.b, c.scratch.data, c.scratch.bytes()};
  const MatmulProblem problem(handle, gpu.stream(), c.shape, x);
  const cublasLtMatmulAlgo_t algo = algo_of(problem.candidates(x.workspace_bytes).choices.at(0));
  return gpu.time_ms({[&] { matmul.run(c.c, c.a, c.b, c.shape, c.scratch); }, [&] { HLAT_CUBLASLT(problem.call(algo, c.c.data, x)); }});
}

// How far the worst sample is from the reference, in tolerances of the conformance table.
double matmul_error(Gpu& gpu, MatmulCase& c, const std::function<void()>& run) {
  gpu.refill(c.c, 3);
  gpu.copy(c.before, c.c);
  run();
  gpu.sync();
  double error = c.worst(gpu);
  gpu.copy(c.again, c.c);
  gpu.copy(c.c, c.before);
  run();
  gpu.sync();
  if (gpu.differ(c.c, c.again)) error = 1e9;  // not the same bits twice
  return error;
}

std::function<void()> call(CudaMatmul& matmul, MatmulCase& c) {
  return [&] { matmul.run(c.c, c.a, c.b, c.shape, c.scratch); };
}

std::function<void()> call_plain(Gpu& gpu, MatmulCase& c) {
  return [&] {
    const MatmulShape& s = c.shape;
    const auto type = [](DType t) { return t == DType::bf16 ? PlainType::bf16 : PlainType::f32; };
    HLAT_CUDA(plain_matmul(gpu.stream(), {c.c.data, c.a.data, c.b.data, s.m, s.n, s.k, c.c.stride[0], c.a.stride[0], c.b.stride[0],
                                          s.trans_a, s.trans_b, s.accumulate, type(s.a), type(s.b), type(s.c), nullptr, nullptr}));
  };
}

// matmul: null for the plain kernel alone.
bool check_matmuls(Gpu& gpu, CudaMatmul* matmul) {
  struct Size {
    int64_t m, n, k;
  };
  double worst = 0, worst_plain = 0;
  int cases = 0, plain = 0;
  for (const Size z : {Size{1, 1, 1},
                       {1, 7, 5},
                       {3, 17, 33},
                       {16, 48, 64},
                       {5, 200, 1},
                       {65, 129, 100},
                       {2, 3, 1000},
                       {40, 66, 520},
                       {512, 384, 1024},
                       {1024, 1000, 777}}) {
    if (matmul == nullptr && z.m * z.n * z.k > 1000000) continue;
    for (int bits = 0; bits < 16; ++bits)
      for (const auto& [in, out] : {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}}) {
        const bool strided = (bits & 8) != 0;
        MatmulCase c(gpu, {z.m, z.n, z.k, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, in, in, out}, strided ? 3 : 0);
        ++cases;
        worst_plain = std::max(worst_plain, matmul_error(gpu, c, call_plain(gpu, c)));
        if (matmul == nullptr) continue;
        c.scratch = c.buffers.bytes(matmul->scratch(c.shape));
        const double error = matmul_error(gpu, c, call(*matmul, c));
        plain += matmul->latest() == "plain kernel" ? 1 : 0;
        worst = std::max(worst, error);
        if (!(error <= 1)) std::printf("WRONG %s: %.3g tolerances, %s\n", c.str().c_str(), error, matmul->latest().c_str());
      }
  }
  std::printf("small matmuls: %d cases, worst %.3f of the tolerance, %d by the plain kernel; the plain kernel on all of them: %.3f\n",
              cases, worst, plain, worst_plain);
  return worst <= 1 && worst_plain <= 1;
}

// Work that was captured and replayed gives the bits of direct calls.
bool check_capture(Gpu& gpu, CudaMatmul& matmul) {
  const AttentionShape s{2, 333, 6, 2, 128};
  CudaAttention attention(gpu.stream());
  AttentionProbe x(gpu, s, DType::bf16);
  const Tensor forward = x.buffers.bytes(attention.scratch(s, DType::bf16, false)),
               backward = x.buffers.bytes(attention.scratch(s, DType::bf16, true));
  MatmulCase c(gpu, {512, 384, 1024, false, true, false, DType::bf16, DType::bf16, DType::bf16}, 0);
  c.scratch = c.buffers.bytes(matmul.scratch(c.shape));
  const auto work = [&] {
    call(matmul, c)();
    attention.forward(x.out, x.lse, x.qkv, s, forward);
    attention.backward(x.dqkv, x.dout, x.out, x.lse, x.qkv, s, backward);
  };
  work();
  gpu.sync();
  gpu.copy(c.again, c.c);
  gpu.copy(x.again, x.dqkv);
  for (const Tensor& t : {c.c, x.out, x.lse, x.dqkv}) gpu.poison(t);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  HLAT_CUDA(cudaStreamBeginCapture(gpu.stream(), cudaStreamCaptureModeThreadLocal));
  work();
  HLAT_CUDA(cudaStreamEndCapture(gpu.stream(), &graph));
  HLAT_CUDA(cudaGraphInstantiate(&replay, graph, 0));
  for (int i = 0; i < 2; ++i) HLAT_CUDA(cudaGraphLaunch(replay, gpu.stream()));
  gpu.sync();
  const bool same = !gpu.differ(c.c, c.again) && !gpu.differ(x.dqkv, x.again);
  HLAT_CUDA(cudaGraphExecDestroy(replay));
  HLAT_CUDA(cudaGraphDestroy(graph));
  std::printf("%scapture and replay\n", same ? "" : "WRONG ");
  return same;
}

bool bench_matmuls(Gpu& gpu, CudaMatmul& matmul) {
  bool good = true;
  double ours = 0, theirs = 0;
  std::printf("%-11s %-8s %-12s %20s %9s %9s %9s %7s  %s\n", "model", "matrix", "pass", "m x n x k", "ms", "TFLOP/s", "favourite", "error",
              "choice");
  for (const Model& x : kModels) {
    const int64_t tokens = x.batch * x.seq, head = x.hidden / x.heads;
    struct Weight {
      const char* name;
      int64_t rows, cols, tokens;
    };
    for (const Weight& w : {Weight{"qkv", (x.heads + 2 * x.kv_heads) * head, x.hidden, tokens},
                            {"o", x.hidden, x.hidden, tokens},
                            {"gate_up", 2 * x.ffn, x.hidden, tokens},
                            {"down", x.hidden, x.ffn, tokens},
                            {"head", x.vocab, x.hidden, tokens},
                            {"head/1k", x.vocab, x.hidden, 1024}}) {
      const DType b = DType::bf16, f = DType::f32;
      struct Pass {
        const char* name;
        MatmulShape s;
      };
      for (const Pass& p : {Pass{"forward", {w.tokens, w.rows, w.cols, false, true, false, b, b, b}},
                            {"dgrad", {w.tokens, w.cols, w.rows, false, false, false, b, b, b}},
                            {"wgrad += f32", {w.rows, w.cols, w.tokens, true, false, true, b, b, f}},
                            {"wgrad += bf16", {w.rows, w.cols, w.tokens, true, false, true, b, b, b}}}) {
        MatmulCase c(gpu, p.s, 0);
        c.scratch = c.buffers.bytes(matmul.scratch(p.s));
        const double error = matmul_error(gpu, c, call(matmul, c));
        const double flops = 2.0 * static_cast<double>(p.s.m) * static_cast<double>(p.s.n) * static_cast<double>(p.s.k);
        const std::vector<double> ms = choice_and_favourite(gpu, matmul, c);
        ours += ms[0];
        theirs += ms[1];
        std::printf("%-11s %-8s %-13s %20s %8.3f %9.1f %9.1f %7.3f  %s\n", x.name, w.name, p.name,
                    fmt::format("{}x{}x{}", p.s.m, p.s.n, p.s.k).c_str(), ms[0], flops / ms[0] * 1e-9, flops / ms[1] * 1e-9, error,
                    matmul.latest().c_str());
        good = good && error <= 1;
      }
    }
  }
  std::printf("all of them: %.2f ms, favourites %.2f ms\n", ours, theirs);
  return good;
}

bool attention_row(Gpu& gpu, CudaAttention& attention, const char* name, const AttentionShape& s, DType dtype, bool timed, bool same_bits) {
  AttentionProbe c(gpu, s, dtype);
  const auto start = std::chrono::steady_clock::now();
  c.scratch_forward = c.buffers.bytes(attention.scratch(s, dtype, false));
  c.scratch_backward = c.buffers.bytes(attention.scratch(s, dtype, true));
  const double planning = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto forward = [&] { attention.forward(c.out, c.lse, c.qkv, s, c.scratch_forward); };
  const auto backward = [&] { attention.backward(c.dqkv, c.dout, c.out, c.lse, c.qkv, s, c.scratch_backward); };
  for (const Tensor& t : {c.out, c.lse, c.dqkv}) gpu.poison(t);
  forward();
  backward();
  gpu.sync();
  const AttentionErrors e = c.errors(gpu);
  gpu.copy(c.again, c.dqkv);
  forward();
  backward();
  gpu.sync();
  const bool repeats = !gpu.differ(c.dqkv, c.again);
  const double limit = dtype == DType::bf16 ? 1e-2 : 5e-5;
  const bool good = e.out <= limit && e.dq <= limit && e.dk <= limit && e.dv <= limit && e.lse <= 1e-4 && (repeats || !same_bits);
  std::printf("%s%-22s %-18s fwd %-6.6s bwd %-6.6s out %.1e lse %.1e dq %.1e dk %.1e dv %.1e%s", good ? "" : "WRONG ", name,
              fmt::format("b{} t{} h{}/{} e{} {}", s.batch, s.seq, s.heads, s.kv_heads, s.head_dim, name_of(dtype)).c_str(),
              attention.describe(s, dtype, false).c_str(), attention.describe(s, dtype, true).c_str(), e.out, e.lse, e.dq, e.dk, e.dv,
              repeats ? "" : " bits differ");
  if (timed) {
    const double flops = 2.0 * static_cast<double>(s.batch * s.heads) * static_cast<double>(s.seq) * static_cast<double>(s.seq) *
                         static_cast<double>(s.head_dim);
    const double f = gpu.time_ms({forward})[0], b = gpu.time_ms({backward})[0];
    std::printf("  fwd %.3f ms %.0f TFLOP/s  bwd %.3f ms %.0f TFLOP/s  scratch %.0f / %.0f MiB, planned in %.2f s", f, flops / f * 1e-9, b,
                2.5 * flops / b * 1e-9, static_cast<double>(c.scratch_forward.bytes()) / 0x1p20,
                static_cast<double>(c.scratch_backward.bytes()) / 0x1p20, planning);
  }
  std::printf("\n");
  return good;
}

bool check_attentions(Gpu& gpu, bool only_own) {
  CudaAttention own(gpu.stream(), true, CudaAttention::Use::own);
  CudaAttention library(gpu.stream(), true, only_own ? CudaAttention::Use::own : CudaAttention::Use::automatic);
  std::printf("attention: %s\n", library.describe().c_str());
  bool good = true;
  const AttentionShape small[] = {{2, 1, 1, 1, 2},    {1, 5, 2, 2, 6},    {2, 64, 4, 2, 16},   {1, 65, 3, 1, 20},
                                  {1, 63, 2, 1, 3},   {1, 200, 4, 2, 64}, {2, 130, 2, 1, 128}, {3, 17, 8, 4, 8},
                                  {1, 129, 2, 2, 80}, {1, 77, 2, 1, 256}, {2, 333, 6, 2, 128}};
  for (const AttentionShape& s : small) {
    good &= attention_row(gpu, own, "own", s, DType::f32, false, true);
    good &= attention_row(gpu, own, "own", s, DType::bf16, false, true);
    if (!only_own) good &= attention_row(gpu, library, "automatic", s, DType::bf16, false, true);
  }
  return good;
}

bool bench_attentions(Gpu& gpu) {
  using Use = CudaAttention::Use;
  CudaAttention chosen(gpu.stream()), library(gpu.stream(), true, Use::library), fast(gpu.stream(), false, Use::library),
      own(gpu.stream(), true, Use::own);
  std::printf("attention: %s\n", chosen.describe().c_str());
  bool good = true;
  for (const Model& x : kModels) {
    const AttentionShape s{x.batch, x.seq, x.heads, x.kv_heads, x.hidden / x.heads};
    good &= attention_row(gpu, chosen, fmt::format("{} automatic", x.name).c_str(), s, DType::bf16, true, true);
    good &= attention_row(gpu, library, fmt::format("{} library", x.name).c_str(), s, DType::bf16, true, true);
    good &= attention_row(gpu, fast, fmt::format("{} any order", x.name).c_str(), s, DType::bf16, true, false);
    good &= attention_row(gpu, own, fmt::format("{} own", x.name).c_str(), s, DType::bf16, true, true);
  }
  const Model& m = kModels[1];
  for (const int64_t batch : {1, 2})
    good &=
        attention_row(gpu, chosen, "llama-1b, smaller", {batch, m.seq, m.heads, m.kv_heads, m.hidden / m.heads}, DType::bf16, true, true);
  return good;
}

int run(int argc, char** argv) {
  bool check = false, bench = false, own = false, attention = false, matmuls = false;
  std::string cache = (std::filesystem::temp_directory_path() / "hlat_cuda_lib_check").string();
  for (int i = 1; i < argc; ++i) {
    check = check || std::strcmp(argv[i], "check") == 0;
    bench = bench || std::strcmp(argv[i], "bench") == 0;
    own = own || std::strcmp(argv[i], "own") == 0;
    attention = attention || std::strcmp(argv[i], "attention") == 0;
    matmuls = matmuls || std::strcmp(argv[i], "matmul") == 0;
    if (std::strncmp(argv[i], "cache=", 6) == 0) cache = argv[i] + 6;
  }
  if (!check && !bench) check = bench = true;
  if (!attention && !matmuls) attention = matmuls = true;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device: skipped\n");
    return 0;
  }
  Gpu gpu;
  if (own) {
    const bool good = (!attention || check_attentions(gpu, true)) & (!matmuls || check_matmuls(gpu, nullptr));
    std::printf("%s\n", good ? "all good" : "WRONG results above");
    return good ? 0 : 1;
  }
  CudaMatmul matmul(gpu.stream(), cache);
  std::printf("%s\n", matmul.describe().c_str());
  bool good = true;
  if (check && attention) good &= check_attentions(gpu, false);
  if (check && matmuls) good &= check_matmuls(gpu, &matmul);
  if (check) good &= check_capture(gpu, matmul);
  if (bench && attention) good &= bench_attentions(gpu);
  if (bench && matmuls) good &= bench_matmuls(gpu, matmul);
  std::printf("%s; %lld shapes measured, %s\n", good ? "all good" : "WRONG results above", static_cast<long long>(matmul.measured()),
              matmul.describe().c_str());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace hlat

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return hlat::run(argc, argv);
  } catch (const std::exception& e) {
    std::printf("error: %s\n", e.what());
    return 1;
  }
}
