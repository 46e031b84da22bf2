// Attention backward for bf16 on AMX tiles. Per key tile, over the query tiles at or after it, with the scores transposed
// (keys down, queries across), P = 2^(c s - lse log2(e)) and delta = sum(dO * O):
//   S^T = K Q^T, dP^T = V dO^T, dS^T = P^T (dP^T - delta),
//   dV += P^T dO, dK += dS^T Q, dQ^T += K^T dS^T; scale is applied to dK and dQ at the end.
// P and dS are rounded to bf16 for the products, sums are f32. Queries past the end are zero and add nothing.
#include "backend/cpu/kernels/amx_softmax.h"
#include "backend/cpu/kernels/attention_delta.h"
#include "backend/cpu/kernels/declare.h"

namespace hlat::HLAT_ISA {
namespace {

// Pieces of work memory; sizes are multiples of a cache line.
struct Layout {
  int64_t rows, head, operand;  // operand: floats of one bf16 operand of all tiles
  int64_t dq, stats, s, dp, dk, dv, small, operands, total;

  Layout(int64_t seq, int64_t head_dim) {
    rows = (seq + kTile - 1) / kTile * kTile;
    head = head_panels(head_dim) * kPanel;
    operand = rows * head / 2;
    dq = 0;
    stats = dq + rows * head;
    s = stats + 2 * rows;
    dp = s + kTileElements;
    dk = dp + kTileElements;
    dv = dk + kTile * head;
    small = dv + kTile * head;
    operands = small + 3 * kTileElements / 2;
    total = operands + 4 * operand;
  }
};

int64_t backward_work(int64_t seq, int64_t head_dim) { return Layout(seq, head_dim).total; }

// Rows (T, E) as two B operands per tile: `across` has the rows as columns, `along` has them along k.
void pack_rows(b16* across, b16* along, const void* rows, int64_t row, int64_t seq, int64_t head_dim) {
  const int64_t panels = head_panels(head_dim);
  for (int64_t first = 0; first < seq; first += kTile) {
    const b16* src = static_cast<const b16*>(rows) + first * row;
    const int64_t count = least(kTile, seq - first), at = first * panels * kPanel;
    pack_b(across + at, src, row, true, count, kTilePanels, head_dim, panels);
    pack_b(along + at, src, row, false, head_dim, panels, count, kTilePanels);
  }
}

struct Gradients {
  b16* p;     // P^T as an A operand
  b16* ds;    // dS^T as an A operand
  b16* ds_b;  // dS^T as a B operand
};

// Weights and score gradients of 32 queries (columns h) of one tile pair.
inline void score_gradients(const Gradients& g, const float* s, const float* dp, int64_t h, float c, const float* lse2, const float* delta,
                            bool diagonal) {
  const int64_t first = h * kPanel;
  const __m512 scale = _mm512_set1_ps(c);
  const __m512 lse0 = _mm512_load_ps(lse2 + first), lse1 = _mm512_load_ps(lse2 + first + 16);
  const __m512 delta0 = _mm512_load_ps(delta + first), delta1 = _mm512_load_ps(delta + first + 16);
  const auto row = [&](int64_t r) {
    const __mmask32 m = diagonal ? visible(first, r) : ~__mmask32{0};
    const int64_t at = r * kTile + first;
    __m512 w0 = exp2_small(_mm512_fmsub_ps(_mm512_load_ps(s + at), scale, lse0));
    __m512 w1 = exp2_small(_mm512_fmsub_ps(_mm512_load_ps(s + at + 16), scale, lse1));
    w0 = _mm512_maskz_mov_ps(static_cast<__mmask16>(m), w0);
    w1 = _mm512_maskz_mov_ps(static_cast<__mmask16>(m >> 16), w1);
    _mm512_store_si512(g.p + a_place(r, h), to_bf16(w0, w1));
    const __m512 d0 = _mm512_mul_ps(w0, _mm512_sub_ps(_mm512_load_ps(dp + at), delta0));
    const __m512 d1 = _mm512_mul_ps(w1, _mm512_sub_ps(_mm512_load_ps(dp + at + 16), delta1));
    const __m512i ds = to_bf16(d0, d1);
    _mm512_store_si512(g.ds + a_place(r, h), ds);
    return ds;
  };
  for (int64_t r = 0; r < kTile; r += 2) {
    const __m512i even = row(r), odd = row(r + 1);
    __m512i low, high;
    interleave(even, odd, low, high);
    _mm512_store_si512(g.ds_b + b_place(r, h), low);
    _mm512_store_si512(g.ds_b + b_place(r, h) + kStep / 2, high);
  }
}

// kTile rows of sums to the (T, Ep) rows of the result.
inline void store_sums(float* out, const float* sums, int64_t head, int64_t rows, int64_t head_dim, float scale) {
  const int64_t padded = padded_head(head_dim);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t e = 0; e < padded; e += kLanes) store(out + r * padded + e, load(sums + r * head + e) * scale);
}

void backward(const AttentionBackwardArgs& a) {
  const TileScope tile_scope;
  const Layout at(a.seq, a.head_dim);
  const int64_t panels = head_panels(a.head_dim), head = at.head, tiles = at.rows / kTile, tile_size = kTile * head;
  float *dq = a.work + at.dq, *lse2 = a.work + at.stats, *delta = lse2 + at.rows;
  float *s = a.work + at.s, *dp = a.work + at.dp, *dk = a.work + at.dk, *dv = a.work + at.dv;
  auto* small = reinterpret_cast<b16*>(a.work + at.small);
  const Gradients g{small, small + kTileElements, small + 2 * kTileElements};
  auto* q_across = reinterpret_cast<b16*>(a.work + at.operands);
  b16 *q_along = q_across + 2 * at.operand, *do_across = q_along + 2 * at.operand, *do_along = do_across + 2 * at.operand;
  pack_rows(q_across, q_along, a.q, a.q_row, a.seq, a.head_dim);
  pack_rows(do_across, do_along, a.dout, a.out_row, a.seq, a.head_dim);
  row_products<b16>(delta, a);
  for (int64_t r = 0; r < a.seq; ++r) lse2[r] = a.lse[r] * kLog2E;
  for (int64_t r = a.seq; r < at.rows; ++r) lse2[r] = delta[r] = 0;
  const float c = a.scale * kLog2E;
  for (int64_t j = 0; j < tiles; ++j) {
    const b16* k_tile = static_cast<const b16*>(a.k_tiles) + j * tile_size;
    const b16* v_tile = static_cast<const b16*>(a.v_tiles) + j * tile_size;
    const b16* k_columns = static_cast<const b16*>(a.k_rows) + j * tile_size;
    for (int64_t i = j; i < tiles; ++i) {
      tile_product(s, kTile, k_tile, kTilePanels, q_across + i * tile_size, kTilePanels, panels, false);
      tile_product(dp, kTile, v_tile, kTilePanels, do_across + i * tile_size, kTilePanels, panels, false);
      for (int64_t h = 0; h < kTilePanels; ++h) score_gradients(g, s, dp, h, c, lse2 + i * kTile, delta + i * kTile, i == j);
      tile_product(dv, head, g.p, kTilePanels, do_along + i * tile_size, panels, kTilePanels, i != j);
      tile_product(dk, head, g.ds, kTilePanels, q_along + i * tile_size, panels, kTilePanels, i != j);
      tile_product(dq + i * tile_size, kTile, k_columns, panels, g.ds_b, kTilePanels, kTilePanels, j > 0);
    }
    const int64_t keys = least(kTile, a.seq - j * kTile), to = j * kTile * padded_head(a.head_dim);
    store_sums(a.dk + to, dk, head, keys, a.head_dim, a.scale);
    store_sums(a.dv + to, dv, head, keys, a.head_dim, 1.0f);
  }
  alignas(64) float scale[kTile];
  for (float& x : scale) x = a.scale;
  for (int64_t i = 0; i < tiles; ++i)
    store_transposed(static_cast<b16*>(a.dq) + i * kTile * a.dq_row, a.dq_row, dq + i * tile_size, scale, least(kTile, a.seq - i * kTile),
                     a.head_dim);
}

}  // namespace

void fill_amx_attention_bwd(CpuKernels& k) {
  k.attention_backward_work[1] = backward_work;
  k.attention_backward[1] = backward;
}

}  // namespace hlat::HLAT_ISA
