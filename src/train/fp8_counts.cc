#include "train/fp8_counts.h"

#include <vector>

namespace hlat {

namespace {

// Of one operand in all micro-batches of a step: tokens times columns. What all tp ranks have whole is counted by each of them in part, as
// where each has its part of the sequence.
struct Passed {
  double values = 0, share = 1;
};
Passed passed(const Executor& executor, ParamId id, Fp8Role role) {
  const Config& c = executor.config();
  const MeshShape& mesh = executor.mesh().shape();
  const Slice& slice = executor.params().spec(id).slice;
  const bool input = role == Fp8Role::input, split_output = slice.dim == 0, whole = input == split_output;
  // Of rows that several ranks hold, one of them has the gradient of each token (nn/holder_sum.h).
  const ParamSpec& spec = executor.params().spec(id);
  const int64_t columns = input ? slice.local()[1] : spec.counted() / slice.local()[1];
  const double tokens = static_cast<double>(c.train.global_batch * c.train.seq_len) / mesh.dp / (whole ? mesh.tp : 1);
  return {.values = tokens * static_cast<double>(columns), .share = whole && !c.parallel.sequence ? 1.0 / mesh.tp : 1.0};
}

}  // namespace

Fp8Counts fp8_counts(const Executor& executor) {
  Fp8Counts counts{};
  const ParamStore& params = executor.params();
  if (!params.precision().fp8) return counts;
  const Fp8State& state = params.fp8_state();
  const auto of = [&](Fp8Role role) { return counts.begin() + 3 * static_cast<int64_t>(role); };
  std::vector<Fp8Seen> met(static_cast<size_t>(state.units()));
  executor.device().download(met.data(), state.met);
  for (const ParamId id : state.params())
    for (const Fp8Role role : {Fp8Role::input, Fp8Role::gradient, Fp8Role::weight}) {
      const Fp8Seen& seen = met[static_cast<size_t>(state.unit(id, role))];
      const Passed own = role == Fp8Role::weight ? Passed{} : passed(executor, id, role);
      of(role)[0] += own.values;
      of(role)[1] += own.share * seen.saturated;
      of(role)[2] += own.share * seen.lost;
    }
  for (const UpdateUnit& u : params.units())
    if (u.counted && u.tensors.fp8_seen.defined()) of(Fp8Role::weight)[0] += static_cast<double>(u.tensors.weight.numel());
  return counts;
}

void add_fp8(Monitors& monitors, std::span<const double> all) {
  for (size_t i = 0; i + 2 < all.size(); i += 3) {
    if (all[i] == 0) continue;
    monitors.fp8_saturated.push_back(all[i + 1] / all[i]);
    monitors.fp8_lost.push_back(all[i + 2] / all[i]);
  }
}

}  // namespace hlat
