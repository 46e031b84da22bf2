#include "backend/cpu/cache_scanned.h"

#include <vector>

#include "base/ceil_div.h"

namespace hlat {

namespace {

constexpr int64_t kPartKeys = 512;
constexpr int64_t kScansAtOnce = 2;  // blocks of scans for each thread: with as many, threads need not share them

// Where things lie in scratch, in floats.
struct ScanLayout {
  int64_t block, state, parts, shared_scans, shared, work, work_each, total;

  ScanLayout(const CacheShape& s, const CpuKernels& k, int threads) {
    const int64_t rows = std::min(kTile, std::min(s.max_queries, kFewQueries) * (s.heads / s.kv_heads));
    state = 2 * kScanStats + rows * padded_head(s.head_dim);
    parts = ceil_div(s.max_keys, kPartKeys);
    block = s.kv_heads;
    shared_scans = kScansAtOnce * threads * block;
    shared = 0;
    work = parts > 1 ? shared_scans * parts * state : 0;
    work_each = ((block + 1) * state + kPartKeys + k.key_scan_work(rows, s.head_dim) + 15) / 16 * 16;
    total = work + work_each * threads;
  }
};

// Heads [head, head + heads) of a segment's queries.
struct Scan {
  const KvSegment* segment;
  int64_t kv, head, heads;
  int64_t rows() const { return segment->count * heads; }
  int64_t parts() const { return ceil_div(segment->keys, kPartKeys); }
};

// Sums over a part of the keys: see KeyScanArgs.
struct State {
  float *peak, *total, *sums;
  explicit State(float* at) : peak(at), total(at + kScanStats), sums(at + 2 * kScanStats) {}
};

class ScannedAttention {
 public:
  explicit ScannedAttention(const CacheCall& call) : call_(call), lay_(call.s, call.kernels, call.threads.count()) {}
  // Threads share the parts of a scan only where there are few scans; the sums are the same either way.
  void run(std::span<const Scan> scans) const {
    const bool few = lay_.parts > 1 && static_cast<int64_t>(scans.size()) < lay_.shared_scans;
    few ? run_shared(scans) : run_each(scans);
  }

 private:
  float* work(int thread) const { return call_.scratch + lay_.work + thread * lay_.work_each; }
  void run_each(std::span<const Scan> scans) const;
  void run_shared(std::span<const Scan> scans) const;
  void scan_part(State to, const Scan& scan, int64_t part, int thread) const;
  void merge(State into, State from, const Scan& scan) const;
  void finish(State sum, const Scan& scan) const;

  const CacheCall& call_;
  ScanLayout lay_;
};

void ScannedAttention::run_each(std::span<const Scan> scans) const {
  const auto count = static_cast<int64_t>(scans.size());
  call_.threads.items(ceil_div(count, lay_.block), [&](int64_t item, int thread) {
    const auto block =
        scans.subspan(static_cast<size_t>(item * lay_.block), static_cast<size_t>(std::min(lay_.block, count - item * lay_.block)));
    const auto sum = [&](size_t i) { return State(work(thread) + static_cast<int64_t>(i + 1) * lay_.state); };
    const State part(work(thread));
    for (int64_t p = 0; p < lay_.parts; ++p)
      for (size_t i = 0; i < block.size(); ++i) {
        if (p >= block[i].parts()) continue;
        scan_part(p == 0 ? sum(i) : part, block[i], p, thread);
        if (p > 0) merge(sum(i), part, block[i]);
      }
    for (size_t i = 0; i < block.size(); ++i) finish(sum(i), block[i]);
  });
}

void ScannedAttention::run_shared(std::span<const Scan> scans) const {
  const auto count = static_cast<int64_t>(scans.size());
  const auto state = [&](int64_t i, int64_t part) { return State(call_.scratch + lay_.shared + (i * lay_.parts + part) * lay_.state); };
  call_.threads.items(count * lay_.parts, [&](int64_t item, int thread) {
    const int64_t part = item / count, i = item % count;
    const Scan& scan = scans[static_cast<size_t>(i)];
    if (part < scan.parts()) scan_part(state(i, part), scan, part, thread);
  });
  call_.threads.items(count, [&](int64_t i, int) {
    const Scan& scan = scans[static_cast<size_t>(i)];
    for (int64_t p = 1; p < scan.parts(); ++p) merge(state(i, 0), state(i, p), scan);
    finish(state(i, 0), scan);
  });
}

void ScannedAttention::scan_part(State to, const Scan& scan, int64_t part, int thread) const {
  const KvSegment& g = *scan.segment;
  float* after_states = work(thread) + (lay_.block + 1) * lay_.state;
  auto* slots = reinterpret_cast<int32_t*>(after_states);
  const int64_t first = part * kPartKeys;
  KeyScanArgs args{};
  args.q = call_.query_of(g.first, scan.head);
  args.q_row = call_.s.qkv_width();
  args.queries = g.count;
  args.heads = scan.heads;
  args.head_dim = call_.s.head_dim;
  args.k = call_.key_of(0, scan.kv);
  args.v = call_.value_of(0, scan.kv);
  args.row = call_.s.cache_width();
  args.slots = slots;
  args.keys = std::min(kPartKeys, g.keys - first);
  args.seen = g.keys - g.count + 1 - first;
  args.scale = call_.scale();
  args.peak = to.peak;
  args.total = to.total;
  args.sums = to.sums;
  args.work = after_states + kPartKeys;
  find_slots(slots, g, first, first + args.keys);
  call_.kernels.key_scan[call_.type()](args);
}

void ScannedAttention::merge(State into, State from, const Scan& scan) const {
  const int64_t padded = padded_head(call_.s.head_dim);
  for (int64_t r = 0; r < scan.rows(); ++r) {
    const float peak = std::max(into.peak[r], from.peak[r]);
    const float keep = std::exp(into.peak[r] - peak), add = std::exp(from.peak[r] - peak);
    into.peak[r] = peak;
    into.total[r] = into.total[r] * keep + from.total[r] * add;
    for (int64_t i = r * padded; i < (r + 1) * padded; ++i) into.sums[i] = into.sums[i] * keep + from.sums[i] * add;
  }
}

void ScannedAttention::finish(State sum, const Scan& scan) const {
  const int64_t padded = padded_head(call_.s.head_dim);
  for (int64_t r = 0; r < scan.rows(); ++r) {
    const float inverse = 1.0f / sum.total[r];
    for (int64_t i = r * padded; i < (r + 1) * padded; ++i) sum.sums[i] *= inverse;
  }
  const KvSegment& g = *scan.segment;
  for (int64_t q = 0; q < g.count; ++q)
    call_.kernels.store_rows[call_.type()](call_.out_of(g.first + q, scan.head), call_.s.head_dim, sum.sums + q * scan.heads * padded,
                                           scan.heads, call_.s.head_dim);
}

}  // namespace

int64_t scanned_cache_floats(const CacheShape& s, const CpuKernels& kernels, int threads) { return ScanLayout(s, kernels, threads).total; }

void scanned_cache_attention(const CacheCall& call, std::span<const KvSegment* const> segments) {
  std::vector<Scan> scans;
  for (const KvSegment* g : segments) {
    const int64_t at_once = std::min(call.group(), kTile / g->count);
    for (int64_t kv = 0; kv < call.s.kv_heads; ++kv)
      for (int64_t h = 0; h < call.group(); h += at_once)
        scans.push_back({g, kv, kv * call.group() + h, std::min(at_once, call.group() - h)});
  }
  ScannedAttention(call).run(scans);
}

}  // namespace hlat
