// Causal attention by tiles with online softmax; no T x T matrix exists.
// Forward, per query tile: S = (scale Q) K^T, running maximum m and sum l, O = O e^(m_old - m) + P V; lse = m + log l.
// Backward, per key tile, over the query tiles at or after it, with P = e^(S - lse) and delta = sum(dO * O):
//   dV += P^T dO, dS = P (dO V^T - delta), dK += dS^T (scale Q), dQ += scale dS K.
// Keys past the end of the sequence are zero in the packed tiles and are always after the query, so the causal rule
// masks them too.
#include <cmath>

#include "backend/cpu/kernels/attention_delta.h"
#include "backend/cpu/kernels/attention_softmax.h"
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/tile_gemm.h"

namespace hlat::HLAT_ISA {
namespace {

template <class T>
void store_rows(void* dst, int64_t row, const float* src, int64_t rows, int64_t head_dim) {
  for (int64_t r = 0; r < rows; ++r) {
    T* out = static_cast<T*>(dst) + r * row;
    const float* in = src + r * padded_head(head_dim);
    lanes(head_dim, [&](int64_t i, int64_t m) { store_part(out + i, load_part(in + i, m), m); });
  }
}

// One tile of keys transposed: out[e][j] = rows[j][e]. Rows have Ep columns, the tile has kTile rows; both are whole vectors.
void transpose_tile(float* out, const float* rows, int64_t padded, int64_t head_dim) {
  for (int64_t e = 0; e < head_dim; e += kLanes)
    for (int64_t j = 0; j < kTile; j += kLanes) {
      vf block[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) block[i] = load(rows + (j + i) * padded + e);
      transpose(block);
      const int64_t n = least(kLanes, head_dim - e);
      for (int64_t i = 0; i < n; ++i) store(out + (e + i) * kTile + j, block[i]);
    }
}

template <class T>
void pack_side(const AttentionPackArgs& a, int64_t offset, void* to_tiles, void* to_rows) {
  const int64_t padded = padded_head(a.head_dim);
  auto* tiles = static_cast<float*>(to_tiles);  // (tiles, E, kTile): keys of a tile side by side
  auto* rows = static_cast<float*>(to_rows);    // (tiles * kTile, Ep)
  float local[kTile * kMaxHead];
  for (int64_t t = 0; t * kTile < a.seq; ++t) {
    const int64_t to = a.first_tile + t;
    float* tile_rows_ = rows ? rows + to * kTile * padded : local;
    const int64_t count = least(kTile, a.seq - t * kTile);
    load_rows(tile_rows_, static_cast<const T*>(a.qkv) + t * kTile * a.row + offset, a.row, count, a.head_dim, 1.0f);
    std::memset(tile_rows_ + count * padded, 0, static_cast<size_t>((kTile - count) * padded) * sizeof(float));
    if (tiles) transpose_tile(tiles + to * kTile * a.head_dim, tile_rows_, padded, a.head_dim);
  }
}

template <class T>
void pack(const AttentionPackArgs& a) {
  pack_side<T>(a, a.k_offset, a.k_tiles, a.k_rows);
  pack_side<T>(a, a.v_offset, a.v_tiles, a.v_rows);
}

int64_t packed(int64_t seq, int64_t head_dim) { return (seq + kTile - 1) / kTile * kTile * padded_head(head_dim); }

int64_t forward_work(int64_t head_dim) { return 2 * kTile * padded_head(head_dim) + kTile * kTile; }

template <class T>
void forward(const AttentionForwardArgs& a) {
  const int64_t padded = padded_head(a.head_dim);
  float* q = a.work;              // (kTile, Ep)
  float* o = q + kTile * padded;  // (kTile, Ep)
  float* s = o + kTile * padded;  // (kTile, kTile)
  float peak[kTile], total[kTile], factor[kTile];
  load_rows(q, static_cast<const T*>(a.q), a.q_row, a.rows, a.head_dim, a.scale);
  for (int64_t r = 0; r < kTile; ++r) peak[r] = kNoScore, total[r] = 0;
  std::memset(o, 0, static_cast<size_t>(a.rows * padded) * sizeof(float));
  const int64_t tile = a.first / kTile, before = a.first % kTile;
  for (int64_t t = 0; t <= tile; ++t) {
    tile_gemm(s, kTile, q, padded, 1, static_cast<const float*>(a.k_tiles) + t * kTile * a.head_dim, kTile, a.rows, kTile, a.head_dim,
              false);
    softmax_tile(
        s, a.rows, [&](int64_t r) { return t == tile ? before + r + 1 : kTile; }, peak, total, factor);
    rescale_rows(o, factor, a.rows, padded);
    const float* v = static_cast<const float*>(a.v_rows) + t * kTile * padded;
    tile_gemm(o, padded, s, kTile, 1, v, padded, a.rows, padded, t == tile ? before + a.rows : kTile, true);
  }
  for (int64_t r = 0; r < a.rows; ++r) {
    const float inverse = 1.0f / total[r];
    for (int64_t i = 0; i < padded; i += kLanes) store(o + r * padded + i, load(o + r * padded + i) * inverse);
    if (a.lse != nullptr) a.lse[r] = peak[r] + std::log(total[r]);
  }
  store_rows<T>(a.out, a.out_row, o, a.rows, a.head_dim);
}

int64_t backward_work(int64_t seq, int64_t head_dim) {
  const int64_t rows = (seq + kTile - 1) / kTile * kTile;
  return 3 * rows * padded_head(head_dim) + rows + 2 * kTile * kTile;
}

// P and dS of one tile pair, in place of S and dP. Columns after the query are zero.
inline void score_gradients(float* s, float* dp, int64_t rows, const float* lse, const float* delta, bool diagonal) {
  for (int64_t r = 0; r < rows; ++r) {
    float* p = s + r * kTile;
    float* d = dp + r * kTile;
    for (int64_t j = 0; j < kTile; j += kLanes) {
      const vf prob = exp_nonpositive(load(p + j) - lse[r]);
      store(p + j, prob);
      store(d + j, prob * (load(d + j) - delta[r]));
    }
    if (diagonal)
      for (int64_t j = r + 1; j < kTile; ++j) p[j] = d[j] = 0;
  }
}

template <class T>
void backward(const AttentionBackwardArgs& a) {
  const int64_t padded = padded_head(a.head_dim);
  const int64_t tiles = (a.seq + kTile - 1) / kTile, rows = tiles * kTile;
  float* q = a.work;                 // (T, Ep), scaled
  float* dout = q + rows * padded;   // (T, Ep)
  float* dq = dout + rows * padded;  // (T, Ep)
  float* delta = dq + rows * padded;
  float* s = delta + rows;
  float* dp = s + kTile * kTile;
  load_rows(q, static_cast<const T*>(a.q), a.q_row, a.seq, a.head_dim, a.scale);
  load_rows(dout, static_cast<const T*>(a.dout), a.out_row, a.seq, a.head_dim, 1.0f);
  std::memset(dq, 0, static_cast<size_t>(rows * padded) * sizeof(float));
  row_products<T>(delta, a);
  for (int64_t j = 0; j < tiles; ++j) {
    const int64_t keys = least(kTile, a.seq - j * kTile);
    float* dk = a.dk + j * kTile * padded;
    float* dv = a.dv + j * kTile * padded;
    const float* k_tile = static_cast<const float*>(a.k_tiles) + j * kTile * a.head_dim;
    const float* v_tile = static_cast<const float*>(a.v_tiles) + j * kTile * a.head_dim;
    const float* k_rows = static_cast<const float*>(a.k_rows) + j * kTile * padded;
    for (int64_t i = j; i < tiles; ++i) {
      const int64_t n = least(kTile, a.seq - i * kTile);
      float* qi = q + i * kTile * padded;
      float* di = dout + i * kTile * padded;
      tile_gemm(s, kTile, qi, padded, 1, k_tile, kTile, n, kTile, a.head_dim, false);
      tile_gemm(dp, kTile, di, padded, 1, v_tile, kTile, n, kTile, a.head_dim, false);
      score_gradients(s, dp, n, a.lse + i * kTile, delta + i * kTile, i == j);
      tile_gemm(dv, padded, s, 1, kTile, di, padded, keys, padded, n, i != j);
      tile_gemm(dk, padded, dp, 1, kTile, qi, padded, keys, padded, n, i != j);
      tile_gemm(dq + i * kTile * padded, padded, dp, kTile, 1, k_rows, padded, n, padded, keys, true);
    }
  }
  for (int64_t i = 0; i < a.seq * padded; i += kLanes) store(dq + i, load(dq + i) * a.scale);
  store_rows<T>(a.dq, a.dq_row, dq, a.seq, a.head_dim);
}

}  // namespace

void fill_attention(CpuKernels& k) {
  k.attention_pack[0] = pack<float>;
  k.attention_pack[1] = pack<b16>;
  k.attention_packed[0] = k.attention_packed[1] = packed;
  k.attention_forward_work[0] = k.attention_forward_work[1] = forward_work;
  k.attention_forward[0] = forward<float>;
  k.attention_forward[1] = forward<b16>;
  k.attention_backward_work[0] = k.attention_backward_work[1] = backward_work;
  k.attention_backward[0] = backward<float>;
  k.attention_backward[1] = backward<b16>;
  k.store_rows[0] = store_rows<float>;
  k.store_rows[1] = store_rows<b16>;
}

}  // namespace hlat::HLAT_ISA
