// Attention forward for bf16 on AMX tiles, by tiles of 64 queries and 64 keys with a running maximum, as attention.cc.
// All products are transposed: S^T = K Q^T, O^T = O^T 2^(m_old - m) + V^T P^T. Maxima are kept in units of log2, so that a
// weight is 2^(c s - m) with c = scale log2(e). Weights are rounded to bf16 for the product only; their sum is not.
#include <cmath>

#include "backend/cpu/kernels/amx_softmax.h"
#include "backend/cpu/kernels/declare.h"

namespace hlat::HLAT_ISA {
namespace {

int64_t packed(int64_t seq, int64_t head_dim) { return (seq + kTile - 1) / kTile * kTile * head_panels(head_dim) * kPanel / 2; }

// `rows`: one panel for 32 keys along the head. `columns`, per tile of keys: one panel for 32 of the head along the keys.
void pack_side(const AttentionPackArgs& a, int64_t offset, void* rows, void* columns) {
  const int64_t panels = head_panels(a.head_dim), tile_size = kTile * panels * kPanel;
  for (int64_t key = 0, t = 0; key < a.seq; key += kTile, ++t) {
    const int64_t count = least(kTile, a.seq - key);
    const b16* src = static_cast<const b16*>(a.qkv) + key * a.row + offset;
    const int64_t to = (a.first_tile + t) * tile_size;
    if (rows != nullptr) pack_a(static_cast<b16*>(rows) + to, src, a.row, false, count, kTilePanels, a.head_dim, panels);
    if (columns != nullptr) pack_a(static_cast<b16*>(columns) + to, src, a.row, true, a.head_dim, panels, count, kTilePanels);
  }
}

void pack(const AttentionPackArgs& a) {
  pack_side(a, a.k_offset, a.k_tiles, a.k_rows);
  pack_side(a, a.v_offset, a.v_tiles, a.v_rows);
}

struct Running {
  alignas(64) float peak[kTile], total[kTile], factor[kTile];
};

// Weights of 32 queries (columns h) from a (kTile, kTile) tile of S^T into p, a B operand. On the diagonal, query 0 of the tile sees
// `before` keys besides its own. factor is what sums made before must be multiplied with; false when that is 1 everywhere.
inline bool softmax_half(b16* p, const float* s, int64_t h, float c, bool diagonal, int64_t before, Running& run) {
  const int64_t first = h * kPanel, keys = diagonal ? least(kTile, steps_of(before + first + kPanel) * kPanel) : kTile;
  s += first;
  __m512 top0 = _mm512_set1_ps(-1e30f), top1 = top0;
  for (int64_t r = 0; r < keys; ++r) {
    const __mmask32 m = diagonal ? visible(before + first, r) : ~__mmask32{0};
    top0 = _mm512_mask_max_ps(top0, static_cast<__mmask16>(m), top0, _mm512_load_ps(s + r * kTile));
    top1 = _mm512_mask_max_ps(top1, static_cast<__mmask16>(m >> 16), top1, _mm512_load_ps(s + r * kTile + 16));
  }
  const __m512 scale = _mm512_set1_ps(c);
  const __m512 old0 = _mm512_load_ps(run.peak + first), old1 = _mm512_load_ps(run.peak + first + 16);
  const __m512 peak0 = _mm512_max_ps(old0, _mm512_mul_ps(top0, scale)), peak1 = _mm512_max_ps(old1, _mm512_mul_ps(top1, scale));
  const __m512 factor0 = exp2_small(_mm512_sub_ps(old0, peak0)), factor1 = exp2_small(_mm512_sub_ps(old1, peak1));
  __m512 sum0 = _mm512_setzero_ps(), sum1 = sum0;
  const auto weights = [&](int64_t r) {
    const __mmask32 m = diagonal ? visible(before + first, r) : ~__mmask32{0};
    __m512 w0 = exp2_small(_mm512_fmsub_ps(_mm512_load_ps(s + r * kTile), scale, peak0));
    __m512 w1 = exp2_small(_mm512_fmsub_ps(_mm512_load_ps(s + r * kTile + 16), scale, peak1));
    w0 = _mm512_maskz_mov_ps(static_cast<__mmask16>(m), w0);
    w1 = _mm512_maskz_mov_ps(static_cast<__mmask16>(m >> 16), w1);
    sum0 = _mm512_add_ps(sum0, w0);
    sum1 = _mm512_add_ps(sum1, w1);
    return to_bf16(w0, w1);
  };
  for (int64_t r = 0; r < keys; r += 2) {
    const __m512i even = weights(r), odd = weights(r + 1);
    __m512i low, high;
    interleave(even, odd, low, high);
    _mm512_store_si512(p + b_place(r, h), low);
    _mm512_store_si512(p + b_place(r, h) + kStep / 2, high);
  }
  for (int64_t r = keys; r < kTile; r += kPanel) std::memset(p + (h * kTilePanels + r / kPanel) * kStep, 0, kStep * sizeof(b16));
  _mm512_store_ps(run.total + first, _mm512_fmadd_ps(_mm512_load_ps(run.total + first), factor0, sum0));
  _mm512_store_ps(run.total + first + 16, _mm512_fmadd_ps(_mm512_load_ps(run.total + first + 16), factor1, sum1));
  _mm512_store_ps(run.peak + first, peak0);
  _mm512_store_ps(run.peak + first + 16, peak1);
  _mm512_store_ps(run.factor + first, factor0);
  _mm512_store_ps(run.factor + first + 16, factor1);
  return (_mm512_cmp_ps_mask(old0, peak0, _CMP_NEQ_UQ) | _mm512_cmp_ps_mask(old1, peak1, _CMP_NEQ_UQ)) != 0;
}

int64_t forward_work(int64_t head_dim) {
  const int64_t head = head_panels(head_dim) * kPanel;
  return kTile * head / 2 + kTile * head + kTileElements + kTileElements / 2;
}

void forward(const AttentionForwardArgs& a) {
  const TileScope tiles;
  const int64_t panels = head_panels(a.head_dim), head = panels * kPanel;
  float* o = a.work;            // (head, kTile)
  float* s = o + kTile * head;  // (kTile, kTile), keys down
  auto* p = reinterpret_cast<b16*>(s + kTileElements);
  b16* q = p + kTileElements;
  const auto* k_tiles = static_cast<const b16*>(a.k_tiles);
  const auto* v_columns = static_cast<const b16*>(a.v_rows);
  const float c = a.scale * kLog2E;
  Running run;
  for (int64_t r = 0; r < kTile; ++r) run.peak[r] = -1e30f, run.total[r] = 0;
  pack_b(q, static_cast<const b16*>(a.q), a.q_row, true, a.rows, kTilePanels, a.head_dim, panels);
  const int64_t last = a.first / kTile, before = a.first % kTile;
  for (int64_t t = 0; t <= last; ++t) {
    tile_product(s, kTile, k_tiles + t * kTile * head, kTilePanels, q, kTilePanels, panels, false);
    bool moved = false;
    for (int64_t h = 0; h < kTilePanels; ++h) moved |= softmax_half(p, s, h, c, t == last, before, run);
    if (moved && t > 0)
      for (int64_t e = 0; e < a.head_dim; ++e)
        for (int64_t r = 0; r < kTile; r += 16) store(o + e * kTile + r, load(o + e * kTile + r) * load(run.factor + r));
    tile_product(o, kTile, v_columns + t * kTile * head, panels, p, kTilePanels, kTilePanels, t > 0);
  }
  for (int64_t r = 0; r < kTile; ++r) run.factor[r] = 1.0f / run.total[r];
  for (int64_t r = 0; r < a.rows && a.lse != nullptr; ++r) a.lse[r] = run.peak[r] * kLn2 + std::log(run.total[r]);
  store_transposed(static_cast<b16*>(a.out), a.out_row, o, run.factor, a.rows, a.head_dim);
}

}  // namespace

void fill_amx_attention(CpuKernels& k) {
  k.attention_packed[1] = packed;
  k.attention_pack[1] = pack;
  k.attention_forward_work[1] = forward_work;
  k.attention_forward[1] = forward;
}

}  // namespace hlat::HLAT_ISA
