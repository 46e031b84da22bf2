#include "checkpoint/state_pieces.h"

#include <algorithm>

namespace hlat {

namespace {

// Of a weight in FP8 the master is what is saved, as the weight.
Tensor state_of(const Bucket& b, StateKind kind) {
  switch (kind) {
    case StateKind::weight: return b.fp8 ? b.master : b.weight;
    case StateKind::master: return b.fp8 ? Tensor{} : b.master;
    case StateKind::moment1: return b.m;
    case StateKind::moment2: return b.v;
  }
  return {};
}

}  // namespace

std::vector<StatePiece> state_pieces(const ParamStore& params, int shard, int shards, Rows rows) {
  std::vector<StatePiece> pieces;
  for (size_t i = 0; i < params.buckets().size(); ++i) {
    const Bucket& b = params.buckets()[i];
    const Part share = part_of(b.weight.numel(), shard, shards);
    for (int k = 0; k < kStateKinds; ++k) {
      const auto kind = static_cast<StateKind>(k);
      const Tensor state = state_of(b, kind);
      if (!state.defined()) continue;
      const int64_t begin = kind == StateKind::weight && !b.fp8 ? 0 : b.own.begin;  // of `state` in the bucket
      HLAT_CHECK(share.begin >= begin && share.end() <= begin + state.numel(), "the state of elements {} to {} is not here", share.begin,
                 share.end());
      for (const ParamId id : b.params) {
        const ParamSpec& spec = params.spec(id);
        const int64_t at = params.offset(id), size = rows == Rows::counted ? spec.counted() : spec.slice.local().numel();
        const auto within = [&](int64_t x) { return std::clamp<int64_t>(x - at, 0, size); };
        for (const FlatRun& run : spec.slice.flat_runs(within(share.begin), within(share.end())))
          pieces.push_back({.kind = kind,
                            .param = id,
                            .tensor = state.rows(at + run.begin - begin, at + run.end - begin),
                            .map = run.map,
                            .bucket = static_cast<int>(i)});
      }
    }
  }
  return pieces;
}

SavedTensor saved_tensor(const ParamStore& params, ParamId param, StateKind kind) {
  const Precision& p = params.precision();
  const DType weight = params.fp8(param) && p.master ? DType::f32 : p.weight;
  const DType type = kind == StateKind::weight ? weight : kind == StateKind::master ? DType::f32 : p.moment;
  return {.name = params.spec(param).name, .kind = kind, .dtype = type, .shape = params.spec(param).slice.global};
}

}  // namespace hlat
