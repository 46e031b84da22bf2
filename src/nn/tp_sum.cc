#include "nn/tp_sum.h"

namespace hlat {

TpSum::TpSum(Ctx& ctx, Tensor y, Tensor room) : ctx_(ctx), y_(y), room_(room) {
  const bool several = ctx.tp.comm().size() > 1, wide = ctx.rounds() || (several && ctx.precision().wide_tp_sums());
  if (!wide || (several && !ctx.precision().wide_tp_sums())) room_ = room.defined() ? room : ctx.tp.partial(ctx.temp(), y, ctx.tokens());
  partial_ = wide ? ctx.temp().alloc(DType::f32, {ctx.tokens(), y.dim(1)}, "partial products in f32") : room_;
}

void TpSum::finish(const StorePlace& place) {
  if (partial_.dtype == y_.dtype) return ctx_.tp.leave(y_, partial_);
  if (ctx_.tp.comm().size() == 1) return ctx_.store(y_, partial_, place);
  if (!ctx_.precision().wide_tp_sums()) {  // each rank rounds its own products before they are added up
    const std::string name = fmt::format("{} of tp rank {}", place.name, ctx_.tp.comm().rank());
    ctx_.store(room_, partial_, {.name = name, .columns = place.columns});
    return ctx_.tp.leave(y_, room_);
  }
  const Scope scope(ctx_.temp());
  const Tensor sum = ctx_.tp.sequence() ? ctx_.temp().alloc(DType::f32, y_.shape, "sum in f32") : partial_;
  ctx_.tp.leave(sum, partial_);
  ctx_.store(y_, sum, place);
}

}  // namespace hlat
