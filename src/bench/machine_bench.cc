#include "bench/machine_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/format.h"
#include "base/median.h"
#include "bench/op_rates.h"
#include "bench/peak.h"
#include "plan/dry_run.h"
#include "runtime/backends.h"

namespace hlat {
namespace {

std::vector<OpCase> cases_of(const Config& config, bool step) {
  std::vector<OpCase> cases;
  if (step) {
    const MeshShape shape = mesh_shape(config.parallel);
    std::vector<StepTrace> traces(static_cast<size_t>(shape.pp));
    std::vector<const StepTrace*> all;
    for (int pp = 0; pp < shape.pp; ++pp) {
      dry_run(config, {}, rank_of({.pp = pp}, shape), &traces[static_cast<size_t>(pp)]);
      all.push_back(&traces[static_cast<size_t>(pp)]);
    }
    cases = step_cases(config, all);
  }
  CaseWidths widths = step ? widths_of(config) : CaseWidths{};
  widths.precision = precision_of(config);
  for (OpCase& c : standard_cases(widths)) cases.push_back(std::move(c));
  return cases;
}

// What ops without rows of their own get: as the rows on average.
void set_shares(Machine& m, const std::string& from, const std::string& date) {
  const auto share = [&](Figure& f, std::vector<double> rates, const Figure& whole) {
    if (!rates.empty() && whole.known())
      f.set(rounded_quantity(std::min(1.0, median(std::move(rates)) / *whole.value), f.unit), "median of the rows below; " + from, date);
  };
  std::vector<double> products, fp8, attention, others;
  DType type = DType::f32;  // of activations
  for (const MatmulRow& r : m.rates.matmul) {
    (is_fp8(r.type) ? fp8 : products).push_back(r.flops_per_s);
    if (!is_fp8(r.type)) type = r.type;
  }
  for (const AttentionRow& r : m.rates.attention) attention.push_back(r.flops_per_s);
  for (const MemoryRow& r : m.rates.memory_ops)
    if (r.bytes >= 1 << 20) others.push_back(r.bytes_per_s);
  share(m.rates.matmul_share, products, m.peak(type));
  share(m.rates.fp8_share, fp8, m.peak_fp8);
  share(m.rates.attention_share, attention, m.peak(type));
  share(m.rates.bandwidth_share, others, m.memory_bandwidth);
}

void set_links(MachineBench& b, int ranks, int local_ranks, bool host, const std::string& from, const std::string& date) {
  const LinkFit fit = fit_links(b.links, ranks, host);
  Links& l = b.machine.links;
  const std::string source = fmt::format("fitted to gathers and sums of 1 KiB to 64 MiB over {} ranks; {}", ranks, from);
  const auto set = [&](Figure& f, double value) {
    if (value > 0) f.set(rounded_quantity(value, f.unit), source, date);
  };
  if (local_ranks == ranks) {
    l.source = fmt::format("medians of calls over {} ranks; {}", ranks, from);
    l.date = date;
    for (const CollectiveTime& t : b.links) l.measured.push_back({t.kind, ranks, t.bytes, rounded_quantity(t.seconds, Unit::seconds)});
    set(l.node.latency, fit.latency);
    set(l.node.bytes_per_s, fit.bytes_per_s);
  } else if (local_ranks == 1) {
    set(l.network.latency, fit.latency);
    set(l.network.bytes_per_s, fit.bytes_per_s);
  }
  set(l.sum_bytes_per_s, fit.sum_bytes_per_s);
}

// On rank 0, with all cores that it may use; the others wait asleep.
void set_thread_share(MachineBench& b, const Config& config, Comm& world, const MachineBenchOptions& options) {
  const auto self = world.split(world.rank(), 0, "alone");
  world.barrier();
  if (world.rank() == 0 && options.own_cores > options.threads) {
    DeviceConfig device = config.device;
    device.backend = "cpu";
    device.threads = options.own_cores;
    const auto backend = make_backend(device, {});
    b.with_threads = measure_thread_shares(config, *backend, *self, options.own_cores, b.machine);
    ThreadShare& share = b.machine.rates.thread_share;
    share.threads = b.with_threads->threads;
    const auto set = [&](Figure& f, double value) {
      f.set(rounded_quantity(value, f.unit), fmt::format("hlat bench machine, steps of one rank with {} threads", share.threads),
            options.date);
    };
    set(share.products, b.with_threads->products);
    set(share.attention, b.with_threads->attention);
    set(share.others, b.with_threads->others);
  }
  world.barrier();
}

}  // namespace

MachineBench bench_machine(const Config& config, Backend& backend, Comm& world, int local_ranks, const MachineBenchOptions& options) {
  MachineBench b;
  Machine& m = b.machine;
  const bool host = backend.device_id().empty();
  const std::string from = fmt::format("hlat bench machine, {} rank{} at a time", world.size(), world.size() > 1 ? "s" : "");
  m.name = options.name;
  m.title = m.device = backend.describe();
  m.cores = host ? options.cores : 0;
  m.ranks_per_node = host ? 0 : local_ranks;
  m.threads = host ? options.threads : 1;
  const auto set = [&](Figure& f, double value) { f.set(rounded_quantity(value, f.unit), from, options.date); };
  const double available = static_cast<double>(backend.device().memory_available());
  set(m.memory, host ? available / local_ranks : available);
  set(m.memory_bandwidth, measure_copy(backend));
  constexpr double kGib = 1073741824.0;
  const OpRatesOptions ops{.seconds = options.seconds,
                           .warm_up = host ? 0.5 : 5,
                           .most_bytes = static_cast<size_t>(std::min(available / local_ranks / 4, (host ? 1 : 24) * kGib)),
                           .most_seconds = options.seconds / (host ? 200 : 1000)};
  OpRatesFound found = measure_op_rates(backend, world, cases_of(config, options.step), ops);
  b.rounds = found.rounds;
  b.cases = found.cases;
  b.left_out = found.left_out;
  const double launch = *found.rates.launch.value;
  m.rates = std::move(found.rates);
  set(m.rates.launch, launch);
  m.rates.source = fmt::format("{}, median of {} rounds over {:.0f} s", from, b.rounds, options.seconds);
  m.rates.date = options.date;
  Figure& peak = precision_of(config).compute == DType::bf16 ? m.peak_bf16 : m.peak_f32;
  peak.set(found.matmul_peak, "the fastest product of " + from, options.date);
  if (found.fp8_peak > 0) m.peak_fp8.set(found.fp8_peak, "the fastest product of FP8 of " + from, options.date);
  set_shares(m, from, options.date);
  if (options.disk_write > 0) set(m.disk_write, options.disk_write);
  if (options.disk_read > 0) set(m.disk_read, options.disk_read);
  if (world.size() == 1) return b;
  b.links = measure_links(config, backend, world, local_ranks, b.transport);
  // Ranks that share a device have no links of their own.
  if (host || b.transport.find("through host memory") == std::string::npos)
    set_links(b, world.size(), local_ranks, host, from, options.date);
  if (!host || !options.step) return b;
  b.in_step = measure_step_rates(config, backend, world, local_ranks, m);
  apply(*b.in_step, m);
  m.rates.source += fmt::format(", times as in steps of the config: products x {:.3f}, attention x {:.3f}, others x {:.3f}",
                                b.in_step->products, b.in_step->attention, b.in_step->others);
  m.links.source += fmt::format(", and {:.0f} us more in a step, for peers that come late", b.in_step->late * 1e6);
  set_thread_share(b, config, world, options);
  return b;
}

std::string machine_bench_text(const MachineBench& b) {
  const Machine& m = b.machine;
  std::string s = fmt::format("{}\n", m.device);
  s += fmt::format("ops            {} measured in {} rounds, {} left out as too large for the time or memory\n", b.cases, b.rounds,
                   b.left_out);
  s += fmt::format("products       {} rows, the fastest {:.4g} GFLOP/s\n", m.rates.matmul.size(),
                   m.peak_bf16.value.value_or(m.peak_f32.value.value_or(0)) * 1e-9);
  s += fmt::format("copy           {:.4g} GB/s, read and written; launch {:.3g} us\n", *m.memory_bandwidth.value * 1e-9,
                   *m.rates.launch.value * 1e6);
  if (b.in_step)
    s += fmt::format(
        "in a step      products take {:.3f} times as long as alone, attention {:.3f}, other ops {:.3f}; collectives {:.0f} us more\n",
        b.in_step->products, b.in_step->attention, b.in_step->others, b.in_step->late * 1e6);
  if (b.with_threads)
    s += fmt::format("{:<14} products keep {:.3f} of speed in proportion, attention {:.3f}, other ops {:.3f}\n",
                     fmt::format("{} threads", b.with_threads->threads), b.with_threads->products, b.with_threads->attention,
                     b.with_threads->others);
  if (!b.transport.empty()) s += fmt::format("links          {}\n", b.transport);
  for (const CollectiveTime& t : b.links)
    s += fmt::format("  {:<16} {:>10} {:>10.1f} us\n", name_of(t.kind), format_bytes(static_cast<uint64_t>(t.bytes)), t.seconds * 1e6);
  if (m.links.node.bytes_per_s.known())
    s += fmt::format("node link      {:.3g} us, {:.4g} GB/s\n", m.links.node.latency.value.value_or(0) * 1e6,
                     *m.links.node.bytes_per_s.value * 1e-9);
  if (m.links.sum_bytes_per_s.known()) s += fmt::format("sums           {:.4g} GB/s\n", *m.links.sum_bytes_per_s.value * 1e-9);
  return s;
}

}  // namespace hlat
