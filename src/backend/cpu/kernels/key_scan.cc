// Attention of few queries over the keys and values of a cache, where they lie: each is read once from memory and nothing is packed.
// By tiles of kTile keys with a running maximum, as attention.cc. A row's arithmetic does not depend on the rows beside it.
#include "backend/cpu/kernels/attention_softmax.h"
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/row_dots.h"

namespace hlat::HLAT_ISA {
namespace {

constexpr int64_t kLine = 64;   // bytes
constexpr int kKeysAtOnce = 4;  // whose products are under way together
#if defined(__AVX512F__)
constexpr int kVecBlock = 8;  // vectors of a value at once: two rows of them fit the registers
#else
constexpr int kVecBlock = 4;
#endif

// One head of the keys or of the values in the cache.
template <class T>
struct Side {
  const T* base;
  int64_t row;
  const int32_t* slots;
  int64_t keys;

  const T* at(int64_t key) const { return base + slots[key] * row; }
  // Slots are far apart, beyond what the hardware foresees.
  void prefetch(int64_t key, int64_t head_dim) const {
    if (key >= keys) return;
    const char* p = reinterpret_cast<const char*>(at(key));
    for (int64_t i = 0; i < head_dim * static_cast<int64_t>(sizeof(T)); i += kLine) __builtin_prefetch(p + i);
  }
};

// s[r][j] = q[r] . k[first + j] for R rows and the keys that exist; columns up to a whole kKeysAtOnce are written.
template <int R, class T>
inline void score_rows(float* s, const float* q, const Side<T>& k, int64_t first, int64_t count, int64_t head_dim) {
  for (int64_t j = 0; j < count; j += kKeysAtOnce) {
    const T* key[kKeysAtOnce];
    for (int64_t n = 0; n < kKeysAtOnce; ++n) key[n] = k.at(first + least(j + n, count - 1));
    row_dots<R, kKeysAtOnce>(s + j, kTile, q, padded_head(head_dim), key, head_dim);
  }
}

// o[r] += sum over keys of p[r][j] v[first + j], V vectors from column i on.
template <int R, int V, class T>
inline void weigh_block(float* o, const float* p, const Side<T>& v, int64_t first, int64_t count, int64_t padded, int64_t i, int64_t m) {
  vf acc[R][V];
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < V; ++n) acc[r][n] = load(o + r * padded + i + n * kLanes);
  for (int64_t j = 0; j < count; ++j) {
    const T* value = v.at(first + j) + i;
    vf vv[V];
#pragma GCC unroll 8
    for (int n = 0; n < V; ++n) vv[n] = V == 1 ? load_part(value, m) : load(value + n * kLanes);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      const vf weight = set(p[r * kTile + j]);
#pragma GCC unroll 8
      for (int n = 0; n < V; ++n) acc[r][n] += weight * vv[n];
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < V; ++n) store(o + r * padded + i + n * kLanes, acc[r][n]);
}

template <int R, class T>
inline void weigh_rows(float* o, const float* p, const Side<T>& v, int64_t first, int64_t count, int64_t head_dim) {
  const int64_t padded = padded_head(head_dim);
  int64_t i = 0;
  for (; i + kVecBlock * kLanes <= head_dim; i += kVecBlock * kLanes) weigh_block<R, kVecBlock>(o, p, v, first, count, padded, i, kLanes);
  for (; i + 4 * kLanes <= head_dim; i += 4 * kLanes) weigh_block<R, 4>(o, p, v, first, count, padded, i, kLanes);
  for (; i < head_dim; i += kLanes) weigh_block<R, 1>(o, p, v, first, count, padded, i, least(kLanes, head_dim - i));
}

int64_t scan_work(int64_t rows, int64_t head_dim) { return rows * (padded_head(head_dim) + kTile); }

template <class T>
void scan(const KeyScanArgs& a) {
  const int64_t rows = a.queries * a.heads, padded = padded_head(a.head_dim);
  float* q = a.work;             // (rows, Ep)
  float* s = q + rows * padded;  // (rows, kTile)
  float factor[kTile];
  for (int64_t i = 0; i < a.queries; ++i)
    load_rows(q + i * a.heads * padded, static_cast<const T*>(a.q) + i * a.q_row, a.head_dim, a.heads, a.head_dim, a.scale);
  for (int64_t r = 0; r < kScanStats; ++r) a.peak[r] = kNoScore, a.total[r] = 0;
  std::memset(a.sums, 0, static_cast<size_t>(rows * padded) * sizeof(float));
  const Side<T> k{static_cast<const T*>(a.k), a.row, a.slots, a.keys}, v{static_cast<const T*>(a.v), a.row, a.slots, a.keys};
  for (int64_t first = 0; first < a.keys; first += kTile) {
    const int64_t count = least(kTile, a.keys - first);
    // The queries from this one on see one of these keys at least.
    const int64_t from = first + 1 > a.seen ? first + 1 - a.seen : 0;
    if (from >= a.queries) break;
    const int64_t begin = from * a.heads;
    for (int64_t j = 0; j < count; ++j) v.prefetch(first + j, a.head_dim);
    int64_t r = begin;
    for (; r + 2 <= rows; r += 2) score_rows<2>(s + r * kTile, q + r * padded, k, first, count, a.head_dim);
    if (r < rows) score_rows<1>(s + r * kTile, q + r * padded, k, first, count, a.head_dim);
    const auto visible = [&](int64_t row) { return least(count, a.seen + (begin + row) / a.heads - first); };
    softmax_tile(s + begin * kTile, rows - begin, visible, a.peak + begin, a.total + begin, factor);
    rescale_rows(a.sums + begin * padded, factor, rows - begin, padded);
    for (int64_t j = 0; j < count; ++j) k.prefetch(first + kTile + j, a.head_dim);
    for (r = begin; r + 2 <= rows; r += 2) weigh_rows<2>(a.sums + r * padded, s + r * kTile, v, first, count, a.head_dim);
    if (r < rows) weigh_rows<1>(a.sums + r * padded, s + r * kTile, v, first, count, a.head_dim);
  }
}

}  // namespace

void fill_key_scan(CpuKernels& k) {
  k.key_scan_work = scan_work;
  k.key_scan[0] = scan<float>;
  k.key_scan[1] = scan<b16>;
}

}  // namespace hlat::HLAT_ISA
