#include "nn/ctx.h"

#include "tensor/columns.h"

namespace hlat {

Tensor Ctx::widened(const Tensor& x) {
  if (!rounds()) return x;
  const Tensor copy = temp().alloc(DType::f32, x.shape, "copy in f32");
  ops.cast(copy, x);
  return copy;
}

void Ctx::store(const Tensor& dst, const Tensor& src, const StorePlace& place) {
  if (dst.dtype == src.dtype) return;
  if (!rounds()) return ops.cast(dst, src);
  const NoiseKey key{.seed = noise.seed,
                     .stream = noise_stream(precision(), fmt::format("{} {}", layer, place.name), noise.rank),
                     .purpose = Noise::cast,
                     .step = static_cast<uint32_t>(noise.step)};
  Columns c = place.columns;
  if (c.parts.empty()) c = {.width = dst.dim(1), .parts = {{.count = dst.dim(1)}}};
  for (const SlicePart& p : c.parts)
    ops.round_rows(columns(dst, p.local, p.local + p.count), columns(src, p.local, p.local + p.count), key,
                   {.first = (noise.first_row + place.row) * c.width + p.global, .run = p.count, .stride = c.width});
}

Ctx::GradientPlace Ctx::gradient(ParamId id, bool accumulates) {
  const Tensor grad = params.grad(id);
  if (!precision().rounds_gradients()) return {grad, accumulates};
  return {temp().alloc(DType::f32, grad.shape, "gradient in f32"), false};
}

void Ctx::add_gradient(ParamId id, const GradientPlace& place, bool accumulates, int64_t row) {
  if (!precision().rounds_gradients()) return;
  const ParamSpec& spec = params.spec(id);
  const int64_t n = place.tensor.numel();
  const Tensor grad = params.grad(id).viewed({n}), sum = place.tensor.viewed({n});
  if (accumulates) {
    const Scope scope(temp());
    const Tensor before = temp().alloc(DType::f32, {n}, "gradient so far");
    ops.cast(before, grad);
    ops.add(sum, before, sum);
  }
  const NoiseKey key{.seed = noise.seed,
                     .stream = noise_stream(precision(), fmt::format("{} gradient {}", spec.name, noise.first_row + row), noise.rank),
                     .purpose = Noise::cast,
                     .step = static_cast<uint32_t>(noise.step)};
  for (const FlatRun& run : spec.slice.flat_runs(0, n))
    ops.cast(grad.rows(run.begin, run.end), sum.rows(run.begin, run.end), precision().gradients, key, run.map);
}

}  // namespace hlat
