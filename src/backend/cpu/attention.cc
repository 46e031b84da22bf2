// Attention driver: packs keys and values of each kv head once, then works on independent pieces in parallel:
// query tiles in the forward, heads in the backward. With grouped queries each head's dK and dV go to scratch and are
// summed in head order, so the result does not depend on the number of threads.
#include "backend/cpu/cpu_ops.h"

namespace hlat {

namespace {

// Where things lie in scratch, in floats.
struct AttentionLayout {
  int64_t tiles, rows_floats, packed;
  int64_t k_tiles, v_tiles, k_rows, v_rows, dk, dv, work, work_each, total;

  AttentionLayout(const AttentionShape& s, const CpuKernels& k, int threads, int type, bool backward) {
    tiles = (s.seq + kTile - 1) / kTile;
    rows_floats = tiles * kTile * padded_head(s.head_dim);
    packed = (k.attention_packed[type](s.seq, s.head_dim) + 15) / 16 * 16;
    int64_t cursor = 0;
    const auto take = [&](int64_t floats) {
      const int64_t begin = cursor;
      cursor += (floats + 15) / 16 * 16;
      return begin;
    };
    const int64_t kv = s.batch * s.kv_heads, q = s.batch * s.heads;
    k_tiles = take(kv * packed);
    v_tiles = backward ? take(kv * packed) : -1;
    k_rows = backward ? take(kv * packed) : -1;
    v_rows = backward ? -1 : take(kv * packed);
    dk = backward ? take(q * rows_floats) : -1;
    dv = backward ? take(q * rows_floats) : -1;
    const int64_t floats = backward ? k.attention_backward_work[type](s.seq, s.head_dim) : k.attention_forward_work[type](s.head_dim);
    work_each = (floats + 15) / 16 * 16;
    work = take(work_each * threads);
    total = cursor;
  }
};

void pack_all(const CpuKernels& kernels, const Threads& threads, const Tensor& qkv, const AttentionShape& s, const AttentionLayout& at_,
              float* base) {
  threads.items(s.batch * s.kv_heads, [&](int64_t i, int) {
    const int64_t b = i / s.kv_heads, h = i % s.kv_heads;
    AttentionPackArgs args{};
    args.qkv = at(qkv, b * s.seq * s.qkv_width());
    args.row = s.qkv_width();
    args.k_offset = (s.heads + h) * s.head_dim;
    args.v_offset = (s.heads + s.kv_heads + h) * s.head_dim;
    args.seq = s.seq;
    args.head_dim = s.head_dim;
    args.k_tiles = base + at_.k_tiles + i * at_.packed;
    args.v_tiles = at_.v_tiles < 0 ? nullptr : base + at_.v_tiles + i * at_.packed;
    args.k_rows = at_.k_rows < 0 ? nullptr : base + at_.k_rows + i * at_.packed;
    args.v_rows = at_.v_rows < 0 ? nullptr : base + at_.v_rows + i * at_.packed;
    kernels.attention_pack[elem(qkv.dtype)](args);
  });
}

}  // namespace

size_t CpuOps::attention_scratch(const AttentionShape& s, DType dtype, bool backward) const {
  return static_cast<size_t>(AttentionLayout(s, kernels_, threads_.count(), elem(dtype), backward).total) * sizeof(float);
}

void CpuOps::do_attention(Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) {
  HLAT_CHECK(s.head_dim <= kMaxHead, "head size {} is above {}", s.head_dim, kMaxHead);
  const AttentionLayout lay(s, kernels_, threads_.count(), elem(qkv.dtype), false);
  auto* base = scratch.as<float>();
  pack_all(kernels_, threads_, qkv, s, lay, base);
  const int64_t group = s.heads / s.kv_heads;
  threads_.items(s.batch * s.heads * lay.tiles, [&](int64_t i, int thread) {
    // The longest tiles first: they leave less waiting at the end.
    const int64_t tile = lay.tiles - 1 - i / (s.batch * s.heads), bh = i % (s.batch * s.heads);
    const int64_t b = bh / s.heads, h = bh % s.heads, kv = b * s.kv_heads + h / group;
    const int64_t row = b * s.seq + tile * kTile;
    AttentionForwardArgs args{};
    args.q = at(qkv, row * s.qkv_width() + h * s.head_dim);
    args.q_row = s.qkv_width();
    args.first = tile * kTile;
    args.rows = std::min(kTile, s.seq - tile * kTile);
    args.head_dim = s.head_dim;
    args.k_tiles = base + lay.k_tiles + kv * lay.packed;
    args.v_rows = base + lay.v_rows + kv * lay.packed;
    args.scale = score_scale(s.head_dim);
    args.out = at(out, row * s.out_width() + h * s.head_dim);
    args.out_row = s.out_width();
    args.lse = lse.as<float>() + bh * s.seq + tile * kTile;
    args.work = base + lay.work + thread * lay.work_each;
    kernels_.attention_forward[elem(qkv.dtype)](args);
  });
}

void CpuOps::do_attention_bwd(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) {
  HLAT_CHECK(s.head_dim <= kMaxHead, "head size {} is above {}", s.head_dim, kMaxHead);
  const AttentionLayout lay(s, kernels_, threads_.count(), elem(qkv.dtype), true);
  auto* base = scratch.as<float>();
  pack_all(kernels_, threads_, qkv, s, lay, base);
  const int64_t group = s.heads / s.kv_heads;
  threads_.items(s.batch * s.heads, [&](int64_t bh, int thread) {
    const int64_t b = bh / s.heads, h = bh % s.heads, kv = b * s.kv_heads + h / group;
    const int64_t row = b * s.seq;
    AttentionBackwardArgs args{};
    args.q = at(qkv, row * s.qkv_width() + h * s.head_dim);
    args.q_row = args.dq_row = s.qkv_width();
    args.dout = at(dout, row * s.out_width() + h * s.head_dim);
    args.out = at(out, row * s.out_width() + h * s.head_dim);
    args.out_row = s.out_width();
    args.lse = lse.as<float>() + bh * s.seq;
    args.seq = s.seq;
    args.head_dim = s.head_dim;
    args.k_tiles = base + lay.k_tiles + kv * lay.packed;
    args.v_tiles = base + lay.v_tiles + kv * lay.packed;
    args.k_rows = base + lay.k_rows + kv * lay.packed;
    args.scale = score_scale(s.head_dim);
    args.dq = at(dqkv, row * s.qkv_width() + h * s.head_dim);
    args.dk = base + lay.dk + bh * lay.rows_floats;
    args.dv = base + lay.dv + bh * lay.rows_floats;
    args.work = base + lay.work + thread * lay.work_each;
    kernels_.attention_backward[elem(qkv.dtype)](args);
  });
  threads_.items(s.batch * s.kv_heads, [&](int64_t i, int) {
    const int64_t b = i / s.kv_heads, h = i % s.kv_heads, first = b * s.heads + h * group;
    int64_t column = (s.heads + h) * s.head_dim;
    for (float* d : {base + lay.dk, base + lay.dv}) {
      float* sum = d + first * lay.rows_floats;
      for (int64_t g = 1; g < group; ++g) kernels_.add[0](sum, sum, sum + g * lay.rows_floats, lay.rows_floats);
      kernels_.store_rows[elem(dqkv.dtype)](at(dqkv, b * s.seq * s.qkv_width() + column), s.qkv_width(), sum, s.seq, s.head_dim);
      column += s.kv_heads * s.head_dim;
    }
  });
}

}  // namespace hlat
