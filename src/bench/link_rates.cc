#include "bench/link_rates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/machine.h"
#include "base/median.h"
#include "comm/host_exchange.h"
#include "runtime/device_comm.h"

namespace hlat {
namespace {

constexpr int64_t kSmallest = 1 << 10, kLargest = 64 << 20;
constexpr int64_t kProduct = 384;  // rows, columns and depth of the products that ranks compute before a call
constexpr int kProducts = 2;

// t = a x + b y with the least sum of squared relative errors, both at least 0.
std::pair<double, double> fit_two(const std::vector<std::array<double, 3>>& rows) {  // x, y, t
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (const auto& [x, y, t] : rows) {
    const double u = x / t, v = y / t;
    xx += u * u, xy += u * v, yy += v * v, x1 += u, y1 += v;
  }
  const double det = xx * yy - xy * xy;
  const double a = det > 0 ? (x1 * yy - y1 * xy) / det : 0, b = det > 0 ? (y1 * xx - x1 * xy) / det : 0;
  if (a < 0 || det <= 0) return {0, y1 / yy};
  return b < 0 ? std::pair{x1 / xx, 0.0} : std::pair{a, b};
}

// Every rank sends to the next.
void exchange(Comm& group, const Tensor& to_next, const Tensor& from_previous) {
  const int next = (group.rank() + 1) % group.size(), previous = (group.rank() + group.size() - 1) % group.size();
  Request received = group.recv(from_previous, previous, 0), sent = group.send(to_next, next, 0);
  group.wait(received);
  group.wait(sent);
}

}  // namespace

double trimmed_mean(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  v.resize(v.size() - v.size() / 10);
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

LinkFit fit_links(const std::vector<CollectiveTime>& times, int ranks, bool host_cores) {
  const double steps = ranks - 1, sent = (ranks - 1.0) / ranks;
  std::vector<std::array<double, 3>> gathers;
  for (const CollectiveTime& t : times)
    if (t.kind == CommKind::all_gather) gathers.push_back({steps, sent * t.bytes, t.seconds});
  HLAT_CHECK(!gathers.empty(), "no all_gather among {} times", times.size());
  const auto [latency, per_byte] = fit_two(gathers);
  LinkFit fit{.latency = latency, .bytes_per_s = per_byte > 0 ? 1 / per_byte : 0};
  if (!host_cores) return fit;
  const double piece = static_cast<double>(sum_staging(ranks)) / (2.0 * ranks);
  std::vector<double> rates;  // of what a reduce_scatter takes more than its messages
  for (const CollectiveTime& t : times) {
    if (t.kind != CommKind::reduce_scatter || t.bytes < 1 << 20) continue;
    const double moved = steps * std::ceil(t.bytes / ranks / piece) * latency + sent * t.bytes * per_byte;
    rates.push_back(t.bytes / std::max(t.seconds - moved, 0.05 * t.seconds));
  }
  if (!rates.empty()) fit.sum_bytes_per_s = median(rates);
  return fit;
}

std::vector<CollectiveTime> measure_links(const Config& config, Backend& backend, Comm& world, int local_ranks, std::string& transport) {
  Config flat = config;
  flat.parallel.tp = flat.parallel.pp = 1;
  flat.parallel.dp = world.size();
  DeviceComm device_comm(flat, backend, world, local_ranks);
  const Mesh mesh = device_comm.make_mesh();
  transport = device_comm.describe();
  Comm& group = mesh.along(Axis::dp);
  MemoryPlan plan;
  plan.bytes[static_cast<size_t>(Purpose::comm)] = sum_staging(world.size()) + kAlign;
  plan.bytes[static_cast<size_t>(Purpose::io)] = 3 * kLargest + 3 * kProduct * kProduct * sizeof(float) + 8 * kAlign;
  const MatmulShape product{.m = kProduct, .n = kProduct, .k = kProduct};
  {
    Memory measuring;
    plan.bytes[static_cast<size_t>(Purpose::temp)] = backend.make_ops(measuring[Purpose::temp])->matmul_scratch(product) + kAlign;
  }
  PlannedMemory memory(backend.device(), plan);
  mesh.reserve(memory.memory()[Purpose::comm]);
  Region& io = memory.memory()[Purpose::io];
  const auto ops = backend.make_ops(memory.memory()[Purpose::temp]);
  group.reserve_messages(kLargest, 2);
  const auto square = [&] { return io.alloc(DType::f32, {kProduct, kProduct}, "product"); };
  const Tensor a = square(), b = square(), c = square();
  for (const Tensor& t : {a, b}) ops->fill(t, 1);
  std::vector<CollectiveTime> times;
  group.open_ring();
  for (const CommKind kind : {CommKind::all_gather, CommKind::reduce_scatter, CommKind::all_reduce, CommKind::send})
    for (int64_t bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
      const Scope scope(io);
      const int64_t rows = bytes / static_cast<int64_t>(sizeof(float));
      const Tensor full = io.alloc(DType::f32, {rows}, "full");
      const Tensor came = io.alloc(DType::f32, {rows}, "came");
      const Tensor own = io.alloc(DType::f32, {part_of(rows, group.rank(), group.size()).count}, "own");
      ops->fill(full, 0);
      ops->fill(own, 0);
      std::vector<double> seconds;
      for (int i = 0; i < (bytes > 4 << 20 ? 9 : 61); ++i) {
        group.barrier();
        for (int n = 0; n < kProducts; ++n) ops->matmul(c, a, b, {});
        ops->finish();
        const double start = now_s();
        if (kind == CommKind::all_gather) group.all_gather(full, own);
        if (kind == CommKind::reduce_scatter) group.reduce_scatter(own, full);
        if (kind == CommKind::all_reduce) group.all_reduce(full);
        if (kind == CommKind::send) exchange(group, full, came);
        ops->finish();
        if (i > 0) seconds.push_back(now_s() - start);  // the first connects
      }
      // The mean, not the median: now and then a rank is late, and in a step the others then wait for it.
      double mean = 0;
      for (const double s : all_gather_values(world, trimmed_mean(seconds))) mean += s / world.size();
      times.push_back({kind, static_cast<double>(bytes), mean});
    }
  return times;
}

}  // namespace hlat
