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

Fp8Counts fp8_counts(const Executor& executor, const Tensor& seen, Fp8Times times) {
  Fp8Counts counts{};
  const ParamStore& params = executor.params();
  if (!params.precision().fp8) return counts;
  const Fp8State& state = params.fp8_state();
  const auto of = [&](Fp8Role role) { return counts.begin() + 3 * static_cast<int64_t>(role); };
  std::vector<Fp8Seen> met(static_cast<size_t>(state.units()));
  executor.device().download(met.data(), seen);
  for (const ParamId id : state.params())
    for (const Fp8Role role : {Fp8Role::input, Fp8Role::gradient, Fp8Role::weight}) {
      if ((role == Fp8Role::weight ? times.updates : times.passes) == 0) continue;
      const Fp8Seen& own = met[static_cast<size_t>(state.unit(id, role))];
      const Passed step = role == Fp8Role::weight ? Passed{} : passed(executor, id, role);
      of(role)[0] += times.passes * step.values;
      of(role)[1] += step.share * own.saturated;
      of(role)[2] += step.share * own.lost;
    }
  for (const UpdateUnit& u : params.units())
    if (u.counted && u.tensors.fp8_seen.defined()) of(Fp8Role::weight)[0] += times.updates * static_cast<double>(u.tensors.weight.numel());
  return counts;
}

Fp8Tally::Fp8Tally(Executor& executor) : executor_(executor) {
  if (!executor.params().precision().fp8) return;
  seen_ = executor.memory()[Purpose::io].alloc(DType::f64, executor.params().fp8_state().met.shape, "FP8 counts of several steps");
}

void Fp8Tally::add(bool updated) {
  if (!seen_.defined()) return;
  const Fp8State& state = executor_.params().fp8_state();
  const int64_t in_passes = state.units_in_passes(), units = state.units();
  Ops& ops = executor_.ops();
  if (times_.passes == 0) ops.fill(seen_.rows(0, in_passes), 0);
  if (updated && times_.updates == 0) ops.fill(seen_.rows(in_passes, units), 0);
  times_.passes += 1;
  times_.updates += updated ? 1 : 0;
  const Tensor sums = seen_.rows(0, updated ? units : in_passes);
  ops.add(sums, sums, updated ? state.met : state.met_in_passes());
}

Fp8Counts Fp8Tally::take(bool weights) {
  const Fp8Counts counts = fp8_counts(executor_, seen_, times_);
  times_.passes = 0;
  if (weights) times_.updates = 0;
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
