#include "param/param_store.h"

#include <algorithm>

namespace hlat {

namespace {

// Parameters start on multiples of this many elements, in every dtype at an aligned address.
constexpr int64_t kGrain = kAlign / 2;

int64_t padded(int64_t n) { return (n + kGrain - 1) / kGrain * kGrain; }

}  // namespace

ParamStore::ParamStore(std::vector<ParamSpec> specs, const Precision& precision, Memory& memory, const Sharding& sharding, ParamUse use)
    : specs_(std::move(specs)),
      precision_(precision),
      weight_(specs_.size()),
      grad_(specs_.size()),
      transposed_(specs_.size()),
      wide_(specs_.size()),
      offset_(specs_.size()) {
  if (use == ParamUse::weights) precision_.fp8 = false;
  plan_buckets(sharding.bucket_bytes);
  place(memory, sharding, use);
  if (use == ParamUse::training && precision_.fp8) fp8_state_ = Fp8State(specs_, precision_, memory[Purpose::optimizer]);
  if (use != ParamUse::training) return;
  for (ParamId id = 0; id < size(); ++id)
    if (fp8(id) && !spec(id).sharing.empty() && !uncounted_seen_.defined())  // on all of their holders: ranks plan alike
      uncounted_seen_ = memory[Purpose::optimizer].alloc(DType::f64, {kFp8Seen}, "FP8 values seen of other ranks' rows");
  make_units();
}

// From the last group to the first: the order of a backward. A bucket ends between groups, so it is ready with its last one. Weights of
// FP8 and others are filled into one bucket each.
void ParamStore::plan_buckets(int64_t bucket_bytes) {
  struct Open {
    int64_t bucket = -1, bytes = 0;
    int group = -1;
  };
  const int64_t size = static_cast<int64_t>(size_of(precision_.grad));
  Open wide, narrow;
  for (ParamId id = this->size() - 1; id >= 0; --id) {
    const ParamSpec& s = spec(id);
    Open& open = fp8(id) ? narrow : wide;
    const bool alone = s.late() || (open.bucket >= 0 && buckets_[static_cast<size_t>(open.bucket)].late);
    if (open.bucket < 0 || alone || (s.group != open.group && open.bytes >= bucket_bytes)) {
      open = {.bucket = static_cast<int64_t>(buckets_.size())};
      buckets_.emplace_back();
      buckets_.back().late = s.late();
      buckets_.back().fp8 = fp8(id);
    }
    open.group = s.group;
    open.bytes += s.slice.local().numel() * size;
    buckets_[static_cast<size_t>(open.bucket)].params.push_back(id);
  }
}

void ParamStore::place(Memory& memory, const Sharding& sharding, ParamUse use) {
  for (Bucket& b : buckets_) {
    std::sort(b.params.begin(), b.params.end());
    int64_t n = 0;
    for (const ParamId id : b.params) {
      offset_[static_cast<size_t>(id)] = n;
      n += padded(spec(id).slice.local().numel());
    }
    const int64_t unit = (b.fp8 ? static_cast<int64_t>(kAlign) : kGrain) * sharding.shards,
                  total = std::max<int64_t>((n + unit - 1) / unit * unit, unit);
    b.weight = lay_out(memory[Purpose::weight], b, total, b.fp8 ? DType::f8e4m3 : precision_.weight, "", weight_);
    if (b.fp8) b.transposed = lay_out(memory[Purpose::weight], b, total, DType::f8e4m3, " transposed", transposed_);
    if (b.fp8) b.wide = both_forms(b);
    if (use == ParamUse::training) place_state(memory, sharding, b, total);
  }
  for (ParamId id = 0; id < size(); ++id) {
    Tensor& t = transposed_[static_cast<size_t>(id)];
    if (t.defined()) t = t.viewed({t.dim(1), t.dim(0)});
  }
}

void ParamStore::place_state(Memory& memory, const Sharding& sharding, Bucket& b, int64_t total) {
  b.grad = lay_out(memory[Purpose::grad], b, total, precision_.grad, " gradient", grad_);
  b.own = part_of(total, sharding.shard, sharding.shards);
  const DType wide = precision_.weight == DType::f64 ? DType::f64 : DType::f32;
  Region& state = memory[Purpose::optimizer];
  if (precision_.master || b.fp8) b.master = state.alloc(precision_.master ? wide : precision_.weight, {b.own.count}, "master weights");
  b.m = state.alloc(precision_.moment, {b.own.count}, "first moments");
  b.v = state.alloc(precision_.moment, {b.own.count}, "second moments");
}

// One tensor of `total` elements whose parts have the names of the bucket's parameters; views are those of the parameters.
Tensor ParamStore::lay_out(Region& region, const Bucket& b, int64_t total, DType dtype, const std::string& what,
                           std::vector<Tensor>& views) const {
  std::vector<RegionEntry> parts;
  int64_t rest = total;
  const auto part = [&](const std::string& name, int64_t elements) {
    parts.push_back({name + what, static_cast<size_t>(elements) * size_of(dtype)});
    rest -= elements;
  };
  for (const ParamId id : b.params) part(spec(id).name, padded(spec(id).slice.local().numel()));
  if (rest > 0) part("bucket padding", rest);
  const Tensor all = region.alloc(dtype, {total}, fmt::format("bucket {}{}", &b - buckets_.data(), what), std::move(parts));
  for (const ParamId id : b.params) views[static_cast<size_t>(id)] = all.rows(offset(id), total).viewed(spec(id).slice.local());
  return all;
}

// The two forms lie side by side, and take as many bytes as one in bf16.
Tensor ParamStore::both_forms(const Bucket& b) {
  Tensor all = Tensor::contiguous(b.weight.data, precision_.weight, b.weight.shape);
  HLAT_CHECK(all.bytes() == b.weight.bytes() + b.transposed.bytes() &&
                 (b.weight.data == nullptr || b.weight.as<std::byte>() + b.weight.bytes() == b.transposed.as<std::byte>()),
             "{} and its transpose {} are not the memory of {}", b.weight.str(), b.transposed.str(), all.str());
  all.allocation = b.weight.allocation;
  for (const ParamId id : b.params) wide_[static_cast<size_t>(id)] = all.rows(offset(id), all.numel()).viewed(spec(id).slice.local());
  return all;
}

void ParamStore::make_units() {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& b = buckets_[i];
    for (const ParamId id : b.params) {
      const int64_t at = offset_[static_cast<size_t>(id)], own = b.own.begin;
      const auto add = [&](int64_t from, int64_t to, bool counted) {
        for (const FlatRun& run : spec(id).slice.flat_runs(std::clamp(own - at, from, to), std::clamp(b.own.end() - at, from, to))) {
          const int64_t x = at + run.begin, y = at + run.end;
          const AdamwTensors tensors{.weight = b.weight.rows(x, y),
                                     .master = b.master.defined() ? b.master.rows(x - own, y - own) : Tensor{},
                                     .m = b.m.rows(x - own, y - own),
                                     .v = b.v.rows(x - own, y - own),
                                     .grad = b.grad.rows(x, y),
                                     .scale = {},
                                     .step = {},
                                     .weight_sq = {},
                                     .fp8_scale = fp8(id) ? fp8_state_.scale(id, Fp8Role::weight) : Tensor{},
                                     .fp8_seen = !fp8(id)  ? Tensor{}
                                                 : counted ? fp8_state_.seen(id, Fp8Role::weight)
                                                           : uncounted_seen_};
          units_.push_back(
              {.param = id, .tensors = tensors, .map = run.map, .bucket = static_cast<int>(i), .begin = x, .counted = counted});
        }
      };
      add(0, spec(id).counted(), true);
      add(spec(id).counted(), spec(id).slice.local().numel(), false);
    }
  }
  const auto middle = std::stable_partition(units_.begin(), units_.end(), [](const UpdateUnit& u) { return u.counted; });
  counted_units_ = middle - units_.begin();
}

void ParamStore::start(Ops& ops, uint64_t seed, const ParamSpec& s, Tensor t, const ElementMap& map) const {
  if (s.init_std == 0)
    ops.fill(t, 1.0);
  else
    ops.fill_normal(t, s.init_std, NoiseKey{.seed = seed, .stream = hash_name(s.name), .purpose = Noise::init}, map);
}

void ParamStore::init(Ops& ops, uint64_t seed) const {
  for (const Bucket& b : buckets_)
    for (const Tensor& t : {b.weight, b.transposed, b.grad, b.m, b.v, b.master})
      if (t.defined()) ops.fill(t, 0);
  for (ParamId id = 0; id < size(); ++id) {
    if (fp8(id)) continue;
    const Slice& slice = spec(id).slice;
    for (const FlatRun& run : slice.flat_runs(0, slice.local().numel()))
      start(ops, seed, spec(id), weight(id).viewed({slice.local().numel()}).rows(run.begin, run.end), run.map);
  }
  // Weights are the same f32 values that a master holds, rounded to the nearest.
  for (const UpdateUnit& u : units_)
    if (u.tensors.master.defined()) start(ops, seed, spec(u.param), u.tensors.master, u.map);
}

}  // namespace hlat
