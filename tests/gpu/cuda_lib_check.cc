// Checks the CUDA matmul and attention against double references on random data, and times them at the shapes of a training step.
//   cuda_lib_check [check] [bench] [cache=DIR]      both by default; exit code 1 when anything is wrong
// A row of the matmul table: the measured choice beside the library's own favourite, which is what a framework runs.
#include <cstdio>
#include <cstring>

#include "backend/cuda/attention.h"
#include "backend/cuda/cuda_check.h"
#include "backend/cuda/matmul.h"
#include "backend/cuda/matmul_problem.h"
#include "gpu/gpu_case.h"

namespace hlat {
namespace {

struct Model {
  const char* name;
  int64_t hidden, heads, kv_heads, ffn, vocab, seq, batch;
};
constexpr Model kModels[] = {{"hlat-7b", 4096, 32, 32, 11008, 32000, 4096, 1},
                             {"llama-1b", 2048, 32, 4, 5632, 32000, 4096, 8},
                             {"llama-134m", 768, 12, 12, 2048, 32000, 1024, 32}};

// The time of the algorithm cuBLASLt ranks first, with the workspace a framework gives it.
double favourite_ms(Gpu& gpu, const MatmulCase& c) {
  static cublasLtHandle_t handle = nullptr;
  if (handle == nullptr) HLAT_CUBLASLT(CublasLt::get().Create(&handle));
  const MatmulOperands x{c.c, c.a, c.b, c.scratch.data, c.scratch.bytes()};
  const MatmulProblem problem(handle, gpu.stream(), c.shape, x);
  const auto proposals = problem.candidates(x.workspace_bytes);
  if (proposals.empty()) return 0;
  const cublasLtMatmulAlgo_t algo = algo_of(proposals.front());
  return gpu.time_ms([&] { HLAT_CUBLASLT(problem.call(algo, c.c.data, x)); });
}

// How far the worst sample is from the reference, in tolerances of the conformance table.
double matmul_error(Gpu& gpu, CudaMatmul& matmul, MatmulCase& c) {
  gpu.refill(c.c, 3);
  gpu.copy(c.before, c.c);
  matmul.run(c.c, c.a, c.b, c.shape, c.scratch);
  gpu.sync();
  double error = c.worst(gpu);
  gpu.copy(c.again, c.c);
  gpu.copy(c.c, c.before);
  matmul.run(c.c, c.a, c.b, c.shape, c.scratch);
  gpu.sync();
  if (gpu.differ(c.c, c.again)) error = 1e9;  // not the same bits twice
  return error;
}

bool check_matmuls(Gpu& gpu, CudaMatmul& matmul) {
  struct Size {
    int64_t m, n, k;
  };
  double worst = 0;
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
                       {1024, 1000, 777}})
    for (int bits = 0; bits < 16; ++bits)
      for (const auto& [in, out] : {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}}) {
        const bool strided = (bits & 8) != 0;
        MatmulCase c(gpu, {z.m, z.n, z.k, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, in, in, out}, matmul, strided ? 3 : 0);
        const double error = matmul_error(gpu, matmul, c);
        ++cases;
        plain += matmul.latest() == "plain kernel" ? 1 : 0;
        worst = std::max(worst, error);
        if (!(error <= 1)) std::printf("WRONG %s: %.3g tolerances, %s\n", c.str().c_str(), error, matmul.latest().c_str());
      }
  std::printf("small matmuls: %d cases, worst %.3f of the tolerance, %d by the plain kernel, %lld measured\n", cases, worst, plain,
              static_cast<long long>(matmul.measured()));
  return worst <= 1;
}

bool bench_matmuls(Gpu& gpu, CudaMatmul& matmul) {
  bool good = true;
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
        MatmulCase c(gpu, p.s, matmul, 0);
        const double error = matmul_error(gpu, matmul, c);
        const double flops = 2.0 * static_cast<double>(p.s.m) * static_cast<double>(p.s.n) * static_cast<double>(p.s.k);
        const double favourite = favourite_ms(gpu, c);
        const double ms = gpu.time_ms([&] { matmul.run(c.c, c.a, c.b, c.shape, c.scratch); });
        std::printf("%-11s %-8s %-13s %20s %8.3f %9.1f %9.1f %7.3f  %s\n", x.name, w.name, p.name,
                    fmt::format("{}x{}x{}", p.s.m, p.s.n, p.s.k).c_str(), ms, flops / ms * 1e-9, flops / favourite * 1e-9, error,
                    matmul.latest().c_str());
        good = good && error <= 1;
      }
    }
  }
  return good;
}

bool attention_row(Gpu& gpu, CudaAttention& attention, const char* name, const AttentionShape& s, DType dtype, bool timed, bool same_bits) {
  AttentionCase c(gpu, s, dtype);
  c.scratch_forward = c.buffers.bytes(attention.scratch(s, dtype, false));
  c.scratch_backward = c.buffers.bytes(attention.scratch(s, dtype, true));
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
    const double f = gpu.time_ms(forward), b = gpu.time_ms(backward);
    std::printf("  fwd %.3f ms %.0f TFLOP/s  bwd %.3f ms %.0f TFLOP/s  scratch %.0f / %.0f MiB", f, flops / f * 1e-9, b,
                2.5 * flops / b * 1e-9, static_cast<double>(c.scratch_forward.bytes()) / 0x1p20,
                static_cast<double>(c.scratch_backward.bytes()) / 0x1p20);
  }
  std::printf("\n");
  return good;
}

bool attentions(Gpu& gpu, bool check, bool bench) {
  CudaAttention library(gpu.stream()), fast(gpu.stream(), false), own(gpu.stream(), true, CudaAttention::Use::own);
  std::printf("attention: %s\n", library.describe().c_str());
  bool good = true;
  const AttentionShape small[] = {{2, 1, 1, 1, 2},    {1, 5, 2, 2, 6},    {2, 64, 4, 2, 16},   {1, 65, 3, 1, 20},
                                  {1, 63, 2, 1, 3},   {1, 200, 4, 2, 64}, {2, 130, 2, 1, 128}, {3, 17, 8, 4, 8},
                                  {1, 129, 2, 2, 80}, {1, 77, 2, 1, 256}, {2, 333, 6, 2, 128}};
  if (check)
    for (const AttentionShape& s : small) {
      good &= attention_row(gpu, own, "own", s, DType::f32, false, true);
      good &= attention_row(gpu, own, "own", s, DType::bf16, false, true);
      good &= attention_row(gpu, library, "automatic", s, DType::bf16, false, true);
    }
  if (bench)
    for (const Model& x : kModels) {
      const AttentionShape s{x.batch, x.seq, x.heads, x.kv_heads, x.hidden / x.heads};
      good &= attention_row(gpu, library, fmt::format("{} repeatable", x.name).c_str(), s, DType::bf16, true, true);
      good &= attention_row(gpu, fast, fmt::format("{} any order", x.name).c_str(), s, DType::bf16, true, false);
      good &= attention_row(gpu, own, fmt::format("{} own", x.name).c_str(), s, DType::bf16, true, true);
    }
  return good;
}

int run(int argc, char** argv) {
  bool check = false, bench = false;
  std::string cache;
  for (int i = 1; i < argc; ++i) {
    check = check || std::strcmp(argv[i], "check") == 0;
    bench = bench || std::strcmp(argv[i], "bench") == 0;
    if (std::strncmp(argv[i], "cache=", 6) == 0) cache = argv[i] + 6;
  }
  if (!check && !bench) check = bench = true;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device: skipped\n");
    return 0;
  }
  Gpu gpu;
  CudaMatmul matmul(gpu.stream(), cache);
  std::printf("%s\n", matmul.describe().c_str());
  bool good = attentions(gpu, check, bench);
  if (check) good &= check_matmuls(gpu, matmul);
  if (bench) good &= bench_matmuls(gpu, matmul);
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
