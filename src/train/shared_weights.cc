#include "train/shared_weights.h"

namespace hlat {

namespace {

constexpr size_t kPackedBytes = 256 << 10;  // larger rows have a message of their own: their transfer outweighs its start

}  // namespace

SharedWeights::SharedWeights(const ParamStore& params, const Mesh& mesh, Ops& ops, Region& io) : ops_(ops) {
  if (mesh.sums_agree(Axis::dp) || !params.precision().keyed_noise) return;  // noise of their own is meant to part them
  for (int i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    Handout h{.comm = mesh.along(axis), .large = {}, .small = {}, .packed = {}};
    int64_t packed = 0;
    for (ParamId id = 0; id < params.size(); ++id)
      for (const Sharing& s : params.spec(id).sharing) {
        if (s.axis != axis) continue;
        const Tensor weight = params.weight(id), rows = weight.rows(s.first_row, weight.dim(0));
        const bool small = rows.bytes() <= kPackedBytes && !is_fp8(rows.dtype);
        (small ? h.small : h.large).push_back(rows.viewed({rows.numel()}));
        packed += small ? rows.numel() : 0;
      }
    if (packed > 0) h.packed = io.alloc(params.precision().weight, {packed}, "weights shared over " + h.comm.name());
    if (packed > 0 || !h.large.empty()) handouts_.push_back(std::move(h));
  }
}

void SharedWeights::hand_out() const {
  for (const Handout& h : handouts_) {
    for (const Tensor& t : h.large) h.comm.broadcast(t, 0);
    if (h.small.empty()) continue;
    const auto copy_all = [&](bool pack) {
      int64_t at = 0;
      for (const Tensor& t : h.small) {
        const Tensor place = h.packed.rows(at, at + t.numel());
        at += t.numel();
        ops_.cast(pack ? place : t, pack ? t : place);
      }
    };
    const bool first = h.comm.rank() == 0;
    if (first) copy_all(true);
    h.comm.broadcast(h.packed, 0);
    if (!first) copy_all(false);
  }
}

}  // namespace hlat
