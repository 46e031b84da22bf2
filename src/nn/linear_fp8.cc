// The forms in which a linear layer's operands are there, with FP8 and without.
#include "nn/linear.h"

namespace hlat {

namespace {

Tensor fp8_temp(Ctx& ctx, DType type, const Shape& shape, std::string_view label) { return ctx.temp().alloc(type, shape, label); }

}  // namespace

// A forward that runs again has counted what it stores before.
Fp8Store Linear::store(const Ctx& ctx, Fp8Role role, Tensor rows, Tensor columns) const {
  const bool counts = ctx.noise.step > 0 && (role == Fp8Role::gradient || !ctx.tape.recomputing());
  const Fp8State& state = ctx.params.fp8_state();
  return {.rows = rows, .columns = columns, .scale = state.scale(weight, role), .seen = counts ? state.seen(weight, role) : Tensor{}};
}

// Of the forms in FP8 a pass stores those that are read: rows by its own product, columns by the backward.
OperandPlace Linear::input_place(Ctx& ctx, BlockOp op, int64_t n, bool multiplied) const {
  const int64_t in = ctx.params.spec(weight).slice.local()[1];
  if (ctx.params.fp8(weight) && !fp8(ctx)) return {.operand = ctx.temp({n, in}, "input")};  // a pass without a backward
  const bool narrow = fp8(ctx), narrow_grads = narrow && ctx.precision().fp8_weight_grads;
  const bool transposed = narrow_grads && !gathers(ctx);
  const TapeOutput kept = ctx.tape.output(op, 0, narrow_grads ? DType::f8e4m3 : ctx.act(), transposed ? Shape{in, n} : Shape{n, in});
  OperandPlace place{.operand = this->kept(ctx, kept.tensor), .stale = kept.stale};
  if (!narrow || !kept.stale) return place;
  if (multiplied && !place.operand.rows.defined()) place.operand.rows = fp8_temp(ctx, DType::f8e4m3, {n, in}, "input in FP8");
  place.store = store(ctx, Fp8Role::input, place.operand.rows, ctx.tape.lasts(op) ? place.operand.columns : Tensor{});
  return place;
}

Operand Linear::kept(const Ctx& ctx, Tensor x) const {
  if (!fp8(ctx) || !ctx.precision().fp8_weight_grads) return x;
  return gathers(ctx) ? Operand{{}, x, {}} : Operand{{}, {}, x};
}

Operand Linear::forward_input(Ctx& ctx, Tensor x) const {
  if (!fp8(ctx)) return x;
  const Tensor rows = fp8_temp(ctx, DType::f8e4m3, x.shape, "input in FP8");
  ctx.ops.quantize(store(ctx, Fp8Role::input, rows, {}), x);
  return {{}, rows, {}};
}

Operand Linear::backward_input_form(Ctx& ctx, Tensor x) const {
  if (!fp8(ctx) || !ctx.precision().fp8_weight_grads) return x;
  const Tensor columns = fp8_temp(ctx, DType::f8e4m3, {x.dim(1), x.dim(0)}, "input transposed");
  Fp8Store transposed = store(ctx, Fp8Role::input, {}, columns);
  transposed.seen = {};  // the forward has counted them
  ctx.ops.quantize(transposed, x);
  return {{}, {}, columns};
}

OperandPlace Linear::gradient_place(Ctx& ctx, int64_t n) const {
  const int64_t out = ctx.params.spec(weight).slice.local()[0];
  OperandPlace place;
  const bool narrow = fp8(ctx), narrow_grads = narrow && ctx.precision().fp8_weight_grads;
  if (!narrow_grads) place.operand.wide = ctx.temp({n, out}, "output gradient");
  if (!narrow) return place;
  const DType type = ctx.precision().fp8_grad;
  place.operand.rows = fp8_temp(ctx, type, {n, out}, "output gradient in FP8");
  if (narrow_grads) place.operand.columns = fp8_temp(ctx, type, {out, n}, "output gradient transposed");
  place.store = store(ctx, Fp8Role::gradient, place.operand.rows, place.operand.columns);
  return place;
}

// Ranks of a sequence-parallel region gather FP8: half the bytes.
Operand Linear::gradient(Ctx& ctx, Tensor dy) const {
  const bool row_split = ctx.params.spec(weight).slice.dim == 1, gathered = row_split && ctx.tp.sequence();
  if (!fp8(ctx)) return row_split ? ctx.enter(dy) : dy;
  const DType type = ctx.precision().fp8_grad;
  const bool narrow_grads = ctx.precision().fp8_weight_grads;
  const Tensor own = fp8_temp(ctx, type, dy.shape, "output gradient in FP8");
  const Shape whole = {gathered ? ctx.tokens() : dy.dim(0), dy.dim(1)};
  const Tensor columns = narrow_grads ? fp8_temp(ctx, type, {whole[1], whole[0]}, "output gradient transposed") : Tensor{};
  ctx.ops.quantize(store(ctx, Fp8Role::gradient, own, gathered ? Tensor{} : columns), dy);
  if (!gathered) return {narrow_grads ? Tensor{} : dy, own, columns};
  const Tensor rows = ctx.enter(own);
  if (columns.defined()) ctx.ops.transpose(columns, rows);
  return {narrow_grads ? Tensor{} : ctx.enter(dy), rows, columns};
}

// x with the tokens of all ranks, as backward_weight reads it.
Operand Linear::gathered(Ctx& ctx, const Operand& x) const {
  if (!fp8(ctx) || !ctx.precision().fp8_weight_grads) return ctx.enter(x.wide);
  if (!gathers(ctx)) return x;
  const Tensor columns = fp8_temp(ctx, DType::f8e4m3, {x.rows.dim(1), ctx.tokens()}, "input transposed");
  const Scope scope(ctx.temp());
  ctx.ops.transpose(columns, ctx.enter(x.rows));
  return {{}, {}, columns};
}

}  // namespace hlat
