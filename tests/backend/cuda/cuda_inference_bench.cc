// Times the kernels of generation and scoring at the shapes of a 7B model, against the rate at which the GPU copies memory, and against
// cuBLASLt where that computes the same. Takes a few seconds; nothing is checked here.
//   cuda_inference_bench [attention] [matmul]     both by default
// Calls of a row are recorded as one graph and read different memory in turn, so that none finds its operands in the second-level cache.
#include <cstdio>
#include <cstring>

#include "backend/cuda/attention/cache_attention.h"
#include "backend/cuda/gpu_case.h"
#include "backend/cuda/matmul/matmul_problem.h"

namespace hlat {
namespace {

constexpr int64_t kPool = int64_t{1200} << 20;  // bytes that calls take turns in

class Bench {
 public:
  Bench() : buffers_(gpu_), pool_(buffers_.tensor(DType::bf16, {kPool / 2})) {
    gpu_.refill(pool_, 1);
    const Tensor copy = buffers_.tensor(DType::bf16, {kPool / 4});
    const double seconds =
        time(8, [&](int) { HLAT_CUDA(cudaMemcpyAsync(copy.data, pool_.data, copy.bytes(), cudaMemcpyDeviceToDevice, gpu_.stream())); });
    copy_rate_ = 2 * static_cast<double>(copy.bytes()) / seconds;
    std::printf("copy: %.0f GB/s\n", copy_rate_ * 1e-9);
  }

  const Gpu& gpu() const { return gpu_; }
  Buffers& buffers() { return buffers_; }
  // Piece i of the pool, of so many bytes, again from the start where it ends.
  void* piece(int i, int64_t bytes) const { return pool_.as<std::byte>() + i % pieces(bytes) * bytes; }
  static int pieces(int64_t bytes) { return static_cast<int>(std::clamp<int64_t>(kPool / bytes, 1, 64)); }

  // Seconds of one of `calls` calls that follow each other: the median of repetitions.
  double time(int calls, const std::function<void(int)>& call) const {
    call(0);
    gpu_.sync();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    HLAT_CUDA(cudaStreamBeginCapture(gpu_.stream(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) call(i);
    HLAT_CUDA(cudaStreamEndCapture(gpu_.stream(), &graph));
    HLAT_CUDA(cudaGraphInstantiate(&replay, graph, 0));
    const double ms = gpu_.time_ms({[&] { HLAT_CUDA(cudaGraphLaunch(replay, gpu_.stream())); }})[0];
    HLAT_CUDA(cudaGraphExecDestroy(replay));
    HLAT_CUDA(cudaGraphDestroy(graph));
    return ms * 1e-3 / calls;
  }

  void row(const std::string& name, double seconds, double bytes, double flops) const {
    std::printf("%-64s %9.1f us %7.0f GB/s %5.1f %% of the copy rate %7.1f TFLOP/s\n", name.c_str(), seconds * 1e6, bytes / seconds * 1e-9,
                100 * bytes / seconds / copy_rate_, flops / seconds * 1e-12);
  }

 private:
  Gpu gpu_;
  Buffers buffers_;
  Tensor pool_;
  double copy_rate_ = 0;
};

double product(std::initializer_list<int64_t> factors) {
  double p = 1;
  for (const int64_t f : factors) p *= static_cast<double>(f);
  return p;
}

void bench_matmul(Bench& bench, int64_t n, int64_t k) {
  static cublasLtHandle_t handle = nullptr;
  if (handle == nullptr) HLAT_CUBLASLT(CublasLt::get().Create(&handle));
  const int64_t bytes = n * k * 2;
  const int calls = std::max(4, Bench::pieces(bytes));
  for (const int64_t m : {1, 2, 4, 8, 16, 32, 64}) {
    Buffers own(bench.gpu());
    const Tensor a = own.matrix(DType::bf16, m, k), c = own.matrix(DType::bf16, m, n), scratch = own.bytes(size_t{32} << 20);
    bench.gpu().refill(a, 2);
    const double read = static_cast<double>(bytes) + product({m, k + n, 2}), flops = product({2, m, n, k});
    const MatmulShape s{m, n, k, false, true, false, DType::bf16, DType::bf16, DType::bf16};
    MatmulOperands x{c, a, Tensor::contiguous(bench.piece(0, bytes), DType::bf16, {n, k}), scratch.data, scratch.bytes()};
    const MatmulProblem problem(handle, bench.gpu().stream(), s, x);
    const cublasLtMatmulAlgo_t algo = algo_of(problem.candidates(x.workspace_bytes).choices.at(0));
    const double seconds = bench.time(calls, [&](int i) {
      x.b.data = bench.piece(i, bytes);
      HLAT_CUBLASLT(problem.call(algo, c.data, x));
    });
    bench.row(fmt::format("{} x {} x {}, cuBLASLt's first proposal", m, n, k), seconds, read, flops);
  }
}

struct CacheCase {
  const char* name;
  int64_t texts, queries, keys;  // of each text
  int64_t shared, sharing;       // leading keys that so many texts have in common
  int64_t heads, kv_heads;
};

// Calls take turns in copies of the cache, in which the texts lie one behind the other after what is shared.
void bench_attention(Bench& bench, const CacheCase& c) {
  constexpr int64_t kHead = 128;
  const int64_t width = 2 * c.kv_heads * kHead, own = c.keys - c.shared, groups = c.texts / c.sharing;
  const int64_t slots = groups * c.shared + c.texts * own, bytes = slots * width * 2, tokens = c.texts * c.queries;
  std::vector<KvSegment> host;
  for (int64_t i = 0; i < c.texts; ++i) {
    KvSegment s{
        .first = static_cast<int32_t>(i * c.queries), .count = static_cast<int32_t>(c.queries), .keys = static_cast<int32_t>(c.keys)};
    s.run_slot = {static_cast<int32_t>(i / c.sharing * c.shared), static_cast<int32_t>(groups * c.shared + i * own), 0, 0};
    s.run_end = {static_cast<int32_t>(c.shared), s.keys, s.keys, s.keys};
    host.push_back(s);
  }
  Buffers buffers(bench.gpu());
  const Tensor segments = buffers.tensor(DType::i32, {c.texts, kKvSegment}),
               qkv = buffers.matrix(DType::bf16, tokens, c.heads * kHead + width);
  const Tensor out = buffers.matrix(DType::bf16, tokens, c.heads * kHead);
  const Tensor large = bytes > kPool ? buffers.matrix(DType::bf16, slots, width) : Tensor{};
  const Tensor scratch = buffers.bytes(cache_attention_parts(tokens, c.heads, kHead, c.queries, c.keys));
  HLAT_CUDA(cudaMemcpy(segments.data, host.data(), segments.bytes(), cudaMemcpyHostToDevice));
  bench.gpu().refill(qkv, 3, 1.0f);
  if (large.defined()) bench.gpu().refill(large, 4, 1.0f);
  const auto call = [&](int i) {
    HLAT_CUDA(run_cache_attention(bench.gpu().stream(), {.tokens = tokens,
                                                         .segments = c.texts,
                                                         .heads = c.heads,
                                                         .kv_heads = c.kv_heads,
                                                         .head_dim = kHead,
                                                         .max_queries = c.queries,
                                                         .max_keys = c.keys,
                                                         .bf16 = true,
                                                         .qkv = qkv.data,
                                                         .cache = large.defined() ? large.data : bench.piece(i, bytes),
                                                         .out = out.data,
                                                         .segment = segments.as<int32_t>(),
                                                         .scratch = scratch.as<float>()}));
  };
  const double seconds = bench.time(bytes > kPool ? 2 : Bench::pieces(bytes), call);
  const double pairs = product({c.texts, c.queries}) * (static_cast<double>(c.keys) - static_cast<double>(c.queries - 1) / 2);
  bench.row(fmt::format("{}: {} x {} over {} keys, {} heads on {}", c.name, c.texts, c.queries, c.keys, c.heads, c.kv_heads), seconds,
            static_cast<double>(bytes) + product({tokens, c.heads, kHead, 4}), 4 * product({c.heads, kHead}) * pairs);
}

void run(bool attention, bool matmul) {
  Bench bench;
  if (attention)
    for (const CacheCase& c : {CacheCase{"generation", 1, 1, 256, 0, 1, 32, 32},
                               {"generation", 1, 1, 4096, 0, 1, 32, 32},
                               {"generation", 32, 1, 192, 0, 1, 32, 32},
                               {"generation", 32, 1, 4096, 0, 1, 32, 32},
                               {"generation", 32, 1, 4096, 0, 1, 32, 8},
                               {"scoring", 16, 512, 512, 0, 1, 32, 32},
                               {"scoring, one prefix of 2400", 64, 100, 2500, 2400, 64, 32, 32},
                               {"scoring, one prefix of 2400", 64, 100, 2500, 2400, 64, 32, 8},
                               {"scoring, prefixes of 100 for 4", 400, 20, 120, 100, 4, 32, 32}})
      bench_attention(bench, c);
  if (!matmul) return;
  bench_matmul(bench, 4096, 4096);
  bench_matmul(bench, 12288, 4096);
  bench_matmul(bench, 22016, 4096);
  bench_matmul(bench, 4096, 11008);
  bench_matmul(bench, 32000, 4096);
}

}  // namespace
}  // namespace hlat

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bool attention = argc == 1, matmul = argc == 1;
  for (int i = 1; i < argc; ++i) {
    attention = attention || std::strcmp(argv[i], "attention") == 0;
    matmul = matmul || std::strcmp(argv[i], "matmul") == 0;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device: skipped\n");
    return 0;
  }
  try {
    hlat::run(attention, matmul);
  } catch (const std::exception& e) {
    std::printf("error: %s\n", e.what());
    return 1;
  }
  return 0;
}
