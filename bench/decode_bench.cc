// Speed of reading and of writing text through a cache on the CPU, beside what bounds it: attention of training for many queries, the rate
// at which memory is read for one. f32 and bf16, two threads.
#include <benchmark/benchmark.h>

#include <vector>

#include "support/test_device.h"

namespace hlat {
namespace {

class Bench {
 public:
  Bench()
      : backend_(cpu_device().make()),
        temp_(Purpose::temp, backend_->device().allocate(kTemp), kTemp),
        data_(Purpose::weight, backend_->device().allocate(kData), kData),
        ops_(backend_->make_ops(temp_)) {}

  Tensor empty(DType dtype, const Shape& shape) { return data_.alloc(dtype, shape, "bench"); }
  Tensor random(DType dtype, const Shape& shape) {
    const Tensor t = empty(dtype, shape);
    ops_->fill_normal(t, 1, {.seed = 1});
    return t;
  }
  Ops& ops() { return *ops_; }

 private:
  static constexpr size_t kTemp = size_t{256} << 20, kData = size_t{768} << 20;
  std::unique_ptr<Backend> backend_;  // its device frees what it gave
  Region temp_, data_;
  std::unique_ptr<Ops> ops_;
};

DType type_of(const benchmark::State& state) { return state.range(0) == 0 ? DType::f32 : DType::bf16; }

struct Heads {
  int64_t heads, kv_heads, head_dim;
};
Heads heads_of(const benchmark::State& state) { return {state.range(1), state.range(2), state.range(3)}; }

void training_attention(benchmark::State& state) {
  Bench b;
  const Heads h = heads_of(state);
  const AttentionShape s{.batch = 1, .seq = 1024, .heads = h.heads, .kv_heads = h.kv_heads, .head_dim = h.head_dim};
  const Tensor qkv = b.random(type_of(state), {s.seq, s.qkv_width()}), out = b.empty(qkv.dtype, {s.seq, s.out_width()}),
               lse = b.empty(DType::f32, {1, s.heads, s.seq});
  for (auto _ : state) b.ops().attention(out, lse, qkv, s);
}

// `segments` texts with `keys` keys each, of which the last `queries` are computed.
void cache_attention(benchmark::State& state, int64_t segments, int64_t queries, int64_t keys) {
  Bench b;
  const Heads h = heads_of(state);
  const CacheShape s{.heads = h.heads,
                     .kv_heads = h.kv_heads,
                     .head_dim = h.head_dim,
                     .max_queries = queries,
                     .max_keys = keys,
                     .pairs = static_cast<double>(segments * queries * keys)};
  const Tensor qkv = b.random(type_of(state), {segments * queries, s.qkv_width()}),
               cache = b.random(qkv.dtype, {segments * keys, s.cache_width()}), out = b.empty(qkv.dtype, {qkv.dim(0), s.out_width()}),
               list = b.empty(DType::i32, {segments, kKvSegment});
  for (int64_t i = 0; i < segments; ++i) {
    KvSegment g{.first = static_cast<int32_t>(i * queries), .count = static_cast<int32_t>(queries), .keys = static_cast<int32_t>(keys)};
    g.run_slot[0] = static_cast<int32_t>(i * keys);
    g.run_end.fill(g.keys);
    list.as<KvSegment>()[i] = g;
  }
  for (auto _ : state) b.ops().cache_attention(out, qkv, cache, list, s);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(cache.bytes()));
}

void product(benchmark::State& state) {
  Bench b;
  const int64_t m = state.range(1), n = state.range(2), k = state.range(3);
  const DType type = type_of(state);
  // As many weights as leave the caches, in turns.
  std::vector<Tensor> weights;
  for (int64_t bytes = 0; bytes < int64_t{256} << 20; bytes += static_cast<int64_t>(weights.back().bytes()))
    weights.push_back(b.random(type, {n, k}));
  const Tensor x = b.random(type, {m, k}), y = b.empty(type, {m, n});
  size_t next = 0;
  for (auto _ : state) b.ops().matmul(y, x, weights[next++ % weights.size()], {.trans_b = true});
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(weights.front().bytes()));
}

// What memory gives: a sum over numbers that do not fit the caches.
void memory_read(benchmark::State& state) {
  Bench b;
  const Tensor x = b.random(DType::f32, {int64_t{64} << 20}), out = b.empty(DType::f64, {1});
  for (auto _ : state) b.ops().sum_squares(out, x);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(x.bytes()));
}

void head_shapes(benchmark::internal::Benchmark* b) {
  for (const int64_t type : {0, 1}) b->Args({type, 12, 12, 64})->Args({type, 32, 8, 128});
  b->Unit(benchmark::kMicrosecond)->UseRealTime()->MinTime(0.3);
}

void product_shapes(benchmark::internal::Benchmark* b) {
  for (const int64_t type : {0, 1})
    for (const int64_t m : {1, 2, 4, 8, 9, 16}) b->Args({type, m, 2304, 768})->Args({type, m, 4096, 4096})->Args({type, m, 32000, 768});
  b->Unit(benchmark::kMicrosecond)->UseRealTime()->MinTime(0.3);
}

BENCHMARK(memory_read)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(training_attention)->Apply(head_shapes);
BENCHMARK_CAPTURE(cache_attention, whole, 1, 1024, 1024)->Apply(head_shapes);
BENCHMARK_CAPTURE(cache_attention, second_half, 1, 512, 1024)->Apply(head_shapes);
BENCHMARK_CAPTURE(cache_attention, choices_of_8, 16, 8, 1024)->Apply(head_shapes);
BENCHMARK_CAPTURE(cache_attention, choices_of_4, 16, 4, 1024)->Apply(head_shapes);
BENCHMARK_CAPTURE(cache_attention, decode_16, 16, 1, 1024)->Apply(head_shapes);
BENCHMARK_CAPTURE(cache_attention, decode_1, 1, 1, 8192)->Apply(head_shapes);
BENCHMARK(product)->Apply(product_shapes);

}  // namespace
}  // namespace hlat
