#include "plan/machine_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "comm/comm.h"
#include "param/param_store.h"
#include "plan/collective_time.h"

namespace hlat {
namespace {

bool computes(OpKind kind) { return kind == OpKind::matmul || kind == OpKind::attention || kind == OpKind::attention_bwd; }

bool is_fp8_product(const TracedOp& op) { return static_cast<OpKind>(op.kind) == OpKind::matmul && is_fp8(static_cast<DType>(op.dtype)); }

// The two casts that make bf16 of the operands, and the product of those.
std::array<TracedOp, 3> emulation_of(const TracedOp& op) {
  const double a = static_cast<double>(op.dims[0] * op.dims[2]), b = static_cast<double>(op.dims[1] * op.dims[2]);
  const auto cast = [](double elements) {
    return TracedOp{.kind = static_cast<uint8_t>(OpKind::quantize), .dims = {}, .bytes = 3 * elements};
  };
  TracedOp wide = op;
  wide.dtype = static_cast<uint8_t>(DType::bf16);
  wide.form &= 7;
  wide.bytes += a + b;
  return {cast(a), cast(b), wide};
}

std::string_view family_of(const TracedOp& op) {
  const auto kind = static_cast<OpKind>(op.kind);
  if (is_fp8_product(op)) return "products of FP8";
  if (kind == OpKind::matmul) return "products";
  return computes(kind) ? "attention" : "other ops";
}

}  // namespace

ClockLayout layout_of(const Config& config) {
  ClockLayout l{.shape = mesh_shape(config.parallel), .compute = precision_of(config).compute};
  l.threads = static_cast<int>(config.device.threads);
  for (int rank = 0; rank < l.shape.tp; ++rank)
    l.kv_ranks =
        std::max(l.kv_ranks, static_cast<int>(share_heads(config.model.heads, config.model.kv(), rank, l.shape.tp).kv_ranks.count));
  return l;
}

MachineClock::MachineClock(const Machine& machine, const ClockLayout& layout) : machine_(machine), layout_(layout) {
  for (int axis = 0; axis < kAxes; ++axis)
    places_[static_cast<size_t>(axis)] = place_group(layout.shape, static_cast<Axis>(axis), machine.ranks_per_node, layout.kv_ranks);
  crossing_ = crossing_messages(layout.shape, machine.ranks_per_node);
  emulates_fp8_ = !machine.multiplies_fp8() && !machine.rates.fp8_share.known() &&
                  std::ranges::none_of(machine.rates.matmul, [](const MatmulRow& r) { return is_fp8(r.type); });
  if (machine.cores == 0) return;
  const int local = machine.ranks_per_node == 0 ? layout.shape.ranks() : std::min(machine.ranks_per_node, layout.shape.ranks());
  hosts_ = (layout.shape.ranks() + local - 1) / local;
  threads_ = layout.threads > 0 ? layout.threads : std::max(1, machine.cores / local);
  speeds_ = speeds();
}

MachineClock::Speeds MachineClock::speeds() const {
  const ThreadShare& share = machine_.rates.thread_share;
  const double measured = std::max(1, machine_.threads), n = threads_ / measured;
  const auto of = [&](const Figure& kept) {
    return n != 1 && kept.known() ? n * std::pow(*kept.value, std::log(n) / std::log(share.threads / measured)) : n;
  };
  return {.products = of(share.products), .attention = of(share.attention), .others = of(share.others)};
}

double MachineClock::speed(OpKind kind) const {
  return kind == OpKind::matmul ? speeds_.products : computes(kind) ? speeds_.attention : speeds_.others;
}

const Figure& MachineClock::share_of(const TracedOp& op) const {
  const auto kind = static_cast<OpKind>(op.kind);
  const Rates& r = machine_.rates;
  if (is_fp8_product(op)) return r.fp8_share;
  return kind == OpKind::matmul ? r.matmul_share : computes(kind) ? r.attention_share : r.bandwidth_share;
}

double MachineClock::from_shares(const TracedOp& op) const {
  const auto kind = static_cast<OpKind>(op.kind);
  const double share = machine_.need(share_of(op));
  const double launch = machine_.rates.launch.value.value_or(0);
  if (!computes(kind)) return launch + op.bytes / (share * machine_.need(machine_.memory_bandwidth));
  const double arithmetic = op.flops / (share * machine_.need(machine_.peak(static_cast<DType>(op.dtype))));
  // What moves more bytes than it computes is bound by them at best at full bandwidth.
  const double moved = machine_.memory_bandwidth.known() ? op.bytes / *machine_.memory_bandwidth.value : 0;
  return launch + std::max(arithmetic, moved);
}

MachineClock::Priced MachineClock::price(const TracedOp& op) const {
  const auto kind = static_cast<OpKind>(op.kind);
  const double work = computes(kind) ? op.flops : op.bytes;
  if (work <= 0) return {machine_.rates.launch.value.value_or(0) / speed(kind), RateBasis::measured};
  const std::optional<TableRate> found = table_rate(machine_.rates, op, layout_.compute);
  if (!found) return {from_shares(op) / speed(kind), std::nullopt};
  double seconds = std::max(work / found->rate, machine_.rates.launch.value.value_or(0));
  if (computes(kind)) {
    if (const Figure& peak = machine_.peak(static_cast<DType>(op.dtype)); peak.known()) seconds = std::max(seconds, op.flops / *peak.value);
    // Host cores have caches that hold operands; a device's memory is where they lie.
    if (machine_.cores == 0 && machine_.memory_bandwidth.known()) seconds = std::max(seconds, op.bytes / *machine_.memory_bandwidth.value);
  }
  return {seconds / speed(kind), found->basis};
}

bool MachineClock::emulated(const TracedOp& op) const { return emulates_fp8_ && is_fp8_product(op); }

double MachineClock::op(const TracedOp& op) const {
  if (!emulated(op)) return price(op).seconds;
  double seconds = 0;
  for (const TracedOp& part : emulation_of(op)) seconds += price(part).seconds;
  return seconds;
}

double MachineClock::call(const TracedCall& call) const {
  const auto kind = static_cast<CommKind>(call.kind);
  const GroupPlace& g = places_[call.group];
  if (const std::optional<double> known = measured_collective(machine_, kind, call.bytes, g)) return *known;
  return machine_.cores > 0 ? host_collective(machine_, kind, call.bytes, g) : device_collective(machine_, kind, call.bytes, g);
}

StepClock::Transfer MachineClock::message(const TracedCall& call) const {
  const Links& l = machine_.links;
  // A message to a neighbour costs the same in a pipeline of any length.
  const GroupPlace pair{.size = 2, .nodes = crossing_ > 0 ? 2 : 1, .per_node = 2, .sharing = 1};
  if (const std::optional<double> known = measured_collective(machine_, CommKind::send, call.bytes, pair)) return {.seconds = *known};
  if (crossing_ == 0) return {.latency = l.node.latency.value.value_or(0), .seconds = call.bytes / machine_.need(l.node.bytes_per_s)};
  return {.latency = l.network.latency.value.value_or(0), .seconds = call.bytes * crossing_ / machine_.need(l.network.bytes_per_s)};
}

std::string MachineClock::threads_text() const {
  const ThreadShare& share = machine_.rates.thread_share;
  const double n = static_cast<double>(threads_) / std::max(1, machine_.threads);
  std::string s = fmt::format("rates are of {} threads a rank, this layout has {}: taken in proportion", machine_.threads, threads_);
  std::string from;
  const auto add = [&](std::string_view family, const Figure& kept, double speed) {
    if (!kept.known()) return;
    s += fmt::format(", {} x {:.3f}", family, speed / n);
    from = fmt::format(" (rates.thread_share of {} threads: {}, {})", share.threads, kept.source, kept.date);
  };
  add("products", share.products, speeds_.products);
  add("attention", share.attention, speeds_.attention);
  add("other ops", share.others, speeds_.others);
  return s + from;
}

std::vector<std::string> MachineClock::estimates(const std::vector<const StepTrace*>& traces) const {
  std::map<std::pair<std::string_view, int>, double> seconds;  // by family and basis; -1: shares
  std::map<std::string_view, const Figure*> shared;            // by family
  double total = 0, emulation = 0;
  bool calls = false, crosses = false;
  const auto add = [&](const TracedOp& o) {
    const Priced p = price(o);
    if (!p.basis) shared[family_of(o)] = &share_of(o);
    seconds[{family_of(o), p.basis ? static_cast<int>(*p.basis) : -1}] += p.seconds;
    total += p.seconds;
  };
  for (const StepTrace* t : traces) {
    for (const TraceEntry& e : t->entries()) {
      if (e.kind != TraceKind::op) continue;
      const TracedOp& o = t->ops()[e.index];
      if (!emulated(o)) {
        add(o);
        continue;
      }
      emulation += op(o);
      for (const TracedOp& part : emulation_of(o)) add(part);
    }
    calls = calls || !t->calls().empty();
    for (const TracedCall& c : t->calls()) crosses = crosses || places_[c.group].nodes > 1;
  }
  std::vector<std::string> lines;
  const auto percent = [&](double s) { return total > 0 ? 100 * s / total : 0; };
  for (const auto& [what, s] : seconds) {
    const auto& family = what.first;
    const int basis = what.second;
    if (percent(s) < 0.05) continue;  // it would read as nothing
    if (basis == static_cast<int>(RateBasis::other_form))
      lines.push_back(fmt::format("{}, {:.1f} % of the time of ops: rates of other forms or outputs of the same type", family, percent(s)));
    if (basis == static_cast<int>(RateBasis::other_type))
      lines.push_back(fmt::format("{}, {:.1f} % of the time of ops: rates of the other type", family, percent(s)));
    if (basis != -1) continue;
    const Figure& f = *shared.at(family);
    lines.push_back(
        fmt::format("{}, {:.1f} % of the time of ops: {} = {} ({}, {})", family, percent(s), f.key, *f.value, f.source, f.date));
  }
  if (emulation > 0)
    lines.push_back(fmt::format(
        "products of FP8, {:.1f} % of the time of ops: emulated, operands become bf16 and are multiplied as such; MFU is against {}",
        percent(emulation), machine_.peak_bf16.key));
  const auto nothing = [&](const Figure& f, bool used) {
    if (used && !f.known()) lines.push_back(fmt::format("{} is empty and counts as nothing: {}", f.key, f.meaning));
  };
  nothing(machine_.rates.launch, true);
  nothing(machine_.step_overhead, true);
  nothing(machine_.links.overlap_cost, calls && machine_.cores == 0);
  nothing(machine_.links.node.latency, calls);
  nothing(machine_.links.network.latency, crosses || crossing_ > 0);
  if (machine_.cores > 0 && threads_ != machine_.threads) lines.push_back(threads_text());
  return lines;
}

}  // namespace hlat
