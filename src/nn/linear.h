// y = x W^T with W (out, in). Backward: dx = dy W, dW += dy^T x.
// A column-split weight may be several matrices one below the other (q, k and v; gate and up). They are one product or, for comparison, one
// each, with a way into and out of the tensor-parallel region of its own (model.coalesced).
// Where the weight is FP8, so are all three products, or all but that of dW (Precision::fp8_weight_grads): who makes x asks input_place
// where to write it, and gradients go through `gradient`. The backward reads x in one form, which the tape keeps or makes again:
//
//   dW in bf16: as it is      FP8: transposed      FP8, x gathered from other ranks' tokens: by rows, and transposed when gathered
//
// Passes with a cache (scoring, generation) multiply in the type of activations, with the masters (model/fp8_weights.h).
#pragma once

#include "nn/ctx.h"
#include "nn/operand.h"

namespace hlat {

struct Linear {
  ParamId weight = -1;  // (out, in)
  bool coalesced = true;

  // Column-split: this tp rank has the given parts of the outputs. Row-split: it has a part of the inputs.
  void declare_columns(ParamBuilder& params, const std::string& name, int64_t out, int64_t in, std::vector<SlicePart> rows, double std) {
    weight = params.add_split(name, {out, in}, 0, std::move(rows), std);
  }
  void declare_rows(ParamBuilder& params, const std::string& name, int64_t out, int64_t in, Part columns, double std) {
    weight = params.add_split(name, {out, in}, 1, {{.global = columns.begin, .count = columns.count}}, std);
  }
  // Which columns y and x have of those of all ranks.
  Columns outputs(const Ctx& ctx) const { return Columns::along(ctx.params.spec(weight).slice, 0); }
  Columns inputs(const Ctx& ctx) const { return Columns::along(ctx.params.spec(weight).slice, 1); }

  bool fp8(const Ctx& ctx) const { return ctx.params.fp8(weight) && ctx.kv == nullptr; }
  // The place of x (n, in), which is an output of `op`. multiplied: this pass computes x W^T.
  OperandPlace input_place(Ctx& ctx, BlockOp op, int64_t n, bool multiplied) const;
  // x as the forward reads it, and as backward_weight does, from what is kept in the type of activations.
  Operand forward_input(Ctx& ctx, Tensor x) const;
  Operand backward_input_form(Ctx& ctx, Tensor x) const;
  // dy for both products of the backward; in memory of the caller's scope. Of a row-split weight dy are the tokens of this rank.
  Operand gradient(Ctx& ctx, Tensor dy) const;
  // Where an op writes dy (n, out) for both products.
  OperandPlace gradient_place(Ctx& ctx, int64_t n) const;

  // y = x W^T as it is: where y is wide (nn/stored.h), the caller stores it.
  void product(Ctx& ctx, const Operand& x, Tensor y) const;
  void forward(Ctx& ctx, Tensor x, Tensor y, const StorePlace& place) const;
  void backward_input(Ctx& ctx, const Operand& dy, Tensor dx, const StorePlace& place) const;
  // The product of a column-split weight, of a region that begins with x.
  void product_columns(Ctx& ctx, const Operand& x, Tensor y) const;
  // y = the sum over tp ranks of x W^T, of a row-split weight.
  void forward_sum(Ctx& ctx, const Operand& x, Tensor y, std::string_view name) const;
  // y = residual + that sum.
  void forward_add(Ctx& ctx, const Operand& x, Tensor residual, Tensor y, std::string_view name) const;
  // Both gradients of a column-split weight, whose forward entered with x.
  void backward_column_split(Ctx& ctx, const Operand& x, const Operand& dy, Tensor dx, std::string_view name) const;
  // row: the first token of x.
  void backward_weight(Ctx& ctx, const Operand& x, const Operand& dy, int64_t row = 0) const;
  // What the tape has of x, for backward_weight and backward_column_split.
  Operand kept(const Ctx& ctx, Tensor x) const;

 private:
  bool gathers(const Ctx& ctx) const { return ctx.tp.sequence() && ctx.params.spec(weight).slice.dim == 0; }
  Fp8Operand scaled(const Ctx& ctx, Tensor values, Fp8Role role) const { return {values, ctx.params.fp8_state().scale(weight, role)}; }
  Fp8Store store(const Ctx& ctx, Fp8Role role, Tensor rows, Tensor columns) const;
  Operand gathered(Ctx& ctx, const Operand& x) const;
  void input_product(Ctx& ctx, const Operand& dy, Tensor dx) const;
  void weight_product(Ctx& ctx, Tensor grad, const Operand& x, const Operand& dy, bool adds) const;
  void backward_columns(Ctx& ctx, Tensor x, Tensor dy, Tensor dx, std::string_view name) const;
  // Rows of the weight that are a matrix of their own.
  std::vector<SlicePart> matrices(const Ctx& ctx) const { return ctx.params.spec(weight).slice.parts; }
};

}  // namespace hlat
