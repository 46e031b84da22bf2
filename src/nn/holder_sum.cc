#include "nn/holder_sum.h"

#include "tensor/columns.h"

namespace hlat {

namespace {

// A product with it copies columns, exactly: of all ops only products take strided ones in both directions. Something not finite makes its
// row NaN, as it would make that of the products that follow.
Tensor unit_matrix(Ctx& ctx, int64_t n) {
  const Tensor unit = ctx.temp({n, n}, "unit matrix"), ones = ctx.temp().alloc(DType::f32, {n, 1}, "ones");
  ctx.ops.fill(unit, 0);
  ctx.ops.fill(ones, 1);
  Tensor diagonal = unit;
  diagonal.shape = {n, 1};
  diagonal.stride[0] = n + 1;
  ctx.ops.round_rows(diagonal, ones, {}, {});
  return unit;
}

}  // namespace

void sum_over_holders(Ctx& ctx, Tensor dqkv) {
  if (ctx.holders == nullptr || ctx.holders->size() == 1) return;
  const AttentionShape& s = ctx.attention;
  const Tensor kv = columns(dqkv, s.heads * s.head_dim, s.qkv_width());
  const Shape shape = {s.tokens(), kv.dim(1)};
  const Scope scope(ctx.temp());
  const Tensor unit = unit_matrix(ctx, shape[1]);
  const Tensor sum = ctx.temp().alloc(ctx.precision().wide_tp_sums() ? DType::f32 : ctx.act(), shape, "dk and dv of all holders");
  ctx.ops.matmul(sum, kv, unit, {});
  const Part own = part_of(shape[0], ctx.holders->rank(), ctx.holders->size());
  ctx.holders->reduce_scatter(sum.rows(own.begin, own.end()), sum);
  for (const Tensor& other : {sum.rows(0, own.begin), sum.rows(own.end(), shape[0])})
    if (other.numel() > 0) ctx.ops.fill(other, 0);
  const Tensor rounded = sum.dtype == ctx.act() ? sum : ctx.temp(shape, "dk and dv");
  if (sum.dtype != ctx.act()) ctx.ops.cast(rounded, sum);
  ctx.ops.matmul(kv, rounded, unit, {});
}

}  // namespace hlat
