// y = x W^T with W (out, in). Backward: dx = dy W, dW += dy^T x.
// A column-split weight may be several matrices one below the other (q, k and v; gate and up). They are one product or, for comparison, one
// each, with a way into and out of the tensor-parallel region of its own (model.coalesced).
#pragma once

#include "nn/ctx.h"

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

  // y = x W^T as it is: where y is wide (nn/stored.h), the caller stores it.
  void product(Ctx& ctx, Tensor x, Tensor y) const { ctx.ops.matmul(y, x, ctx.params.weight(weight), {.trans_b = true}); }
  void forward(Ctx& ctx, Tensor x, Tensor y, const StorePlace& place) const;
  void backward_input(Ctx& ctx, Tensor dy, Tensor dx, const StorePlace& place) const;
  // The product of a column-split weight, of a region that begins with x.
  void product_columns(Ctx& ctx, Tensor x, Tensor y) const;
  // y = the sum over tp ranks of x W^T, of a row-split weight.
  void forward_sum(Ctx& ctx, Tensor x, Tensor y, std::string_view name) const;
  // y = residual + that sum.
  void forward_add(Ctx& ctx, Tensor x, Tensor residual, Tensor y, std::string_view name) const;
  // Both gradients of a column-split weight, whose forward entered with x.
  void backward_column_split(Ctx& ctx, Tensor x, Tensor dy, Tensor dx, std::string_view name) const;
  // row: the first token of x.
  void backward_weight(Ctx& ctx, Tensor x, Tensor dy, int64_t row = 0) const;

 private:
  void backward_columns(Ctx& ctx, Tensor x, Tensor dy, Tensor dx, std::string_view name) const;
  // Rows of the weight that are a matrix of their own.
  std::vector<SlicePart> matrices(const Ctx& ctx) const { return ctx.params.spec(weight).slice.parts; }
};

}  // namespace hlat
