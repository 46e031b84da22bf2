#include "plan/collective_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "comm/shares.h"

namespace hlat {
namespace {

double tree_steps(int n) { return std::ceil(std::log2(static_cast<double>(n))); }
double part_sent(int n) { return (n - 1.0) / n; }

// What a group has of the links: infinite bandwidth where it does not use one.
struct GroupLinks {
  double node = std::numeric_limits<double>::infinity(), network = node;
  double node_latency = 0, network_latency = 0;

  GroupLinks(const Machine& m, const GroupPlace& g) {
    if (g.per_node > 1) {
      node = m.need(m.links.node.bytes_per_s);
      node_latency = m.links.node.latency.value.value_or(0);
    }
    if (g.nodes > 1) {
      network = m.need(m.links.network.bytes_per_s) / g.sharing;
      network_latency = m.links.network.latency.value.value_or(0);
    }
  }
  double slower() const { return std::min(node, network); }
  double latency() const { return std::max(node_latency, network_latency); }
};

double ring_pass(double bytes, const GroupPlace& g, const GroupLinks& k) {
  const int crossing = g.nodes > 1 ? g.nodes : 0;  // steps of a round that leave a node
  const double step = ((g.size - crossing) * k.node_latency + crossing * k.network_latency) / g.size;
  return part_sent(g.size) * bytes / k.slower() + (g.size - 1) * step;
}

double levels_pass(double bytes, const GroupPlace& g, const GroupLinks& k) {
  return part_sent(g.per_node) * bytes / k.node + (g.per_node - 1) * k.node_latency + part_sent(g.nodes) * bytes / k.network +
         (g.nodes - 1) * k.network_latency;
}

double tree_pass(double bytes, const GroupPlace& g, const GroupLinks& k) {
  return bytes / k.slower() + tree_steps(g.per_node) * k.node_latency + tree_steps(g.nodes) * k.network_latency;
}

double pass(CollectiveAlgorithm algorithm, bool sum, double bytes, const GroupPlace& g, const GroupLinks& k) {
  const double ring = std::min(ring_pass(bytes, g, k), levels_pass(bytes, g, k));
  if (!sum || algorithm == CollectiveAlgorithm::ring) return ring;  // trees are for sums that all get
  const double tree = tree_pass(bytes, g, k);
  return algorithm == CollectiveAlgorithm::tree ? tree : std::min(ring, tree);
}

}  // namespace

std::optional<double> measured_collective(const Machine& m, CommKind kind, double bytes, const GroupPlace& g) {
  if (g.nodes > 1) return std::nullopt;
  std::vector<CollectiveRow> rows;
  for (const CollectiveRow& r : m.links.measured)
    if (r.op == kind && r.ranks == g.size) rows.push_back(r);
  if (rows.empty()) return std::nullopt;
  std::sort(rows.begin(), rows.end(), [](const CollectiveRow& a, const CollectiveRow& b) { return a.bytes < b.bytes; });
  if (bytes <= rows.front().bytes) return rows.front().seconds;
  if (bytes >= rows.back().bytes) return rows.back().seconds * bytes / rows.back().bytes;
  const auto above = std::find_if(rows.begin(), rows.end(), [&](const CollectiveRow& r) { return r.bytes >= bytes; });
  if (above->bytes == bytes) return above->seconds;
  const CollectiveRow &a = *(above - 1), &b = *above;
  const double share = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
  return std::exp((1 - share) * std::log(a.seconds) + share * std::log(b.seconds));
}

double device_collective(const Machine& m, CommKind kind, double bytes, const GroupPlace& g) {
  if (g.size == 1) return 0;
  const GroupLinks k(m, g);
  switch (kind) {
    case CommKind::all_reduce: return 2 * pass(m.links.algorithm, true, bytes, g, k);
    case CommKind::reduce_scatter:
    case CommKind::all_gather: return pass(m.links.algorithm, false, bytes, g, k);
    case CommKind::broadcast: return tree_pass(bytes, g, k);
    case CommKind::barrier: return 2 * (tree_steps(g.per_node) * k.node_latency + tree_steps(g.nodes) * k.network_latency);
    case CommKind::send:
    case CommKind::recv: break;
  }
  HLAT_CHECK(false, "{} is not a collective", name_of(kind));
  return 0;
}

double host_collective(const Machine& m, CommKind kind, double bytes, const GroupPlace& g) {
  if (g.size == 1) return 0;
  GroupLinks k(m, g);
  k.network /= g.per_node;  // every rank sends for itself
  const int n = g.size;
  const double peers = n - 1, link = k.slower(), latency = k.latency();
  const auto summed = [&](double terms) { return terms / m.need(m.links.sum_bytes_per_s); };
  const double piece = static_cast<double>(sum_staging(n)) / (2.0 * n);
  const double scatter = peers * std::ceil(bytes / n / piece) * latency + part_sent(n) * bytes / link;
  const double gather = peers * latency + part_sent(n) * bytes / link;
  switch (kind) {
    case CommKind::all_reduce:
      if (bytes <= static_cast<double>(kSmallSum)) return peers * (latency + bytes / link) + summed(n * bytes);
      return scatter + gather + summed(bytes);
    case CommKind::reduce_scatter: return scatter + summed(bytes);
    case CommKind::all_gather: return gather;
    case CommKind::broadcast: return tree_steps(n) * (latency + bytes / link);
    case CommKind::barrier: return tree_steps(n) * latency;
    case CommKind::send:
    case CommKind::recv: break;
  }
  HLAT_CHECK(false, "{} is not a collective", name_of(kind));
  return 0;
}

}  // namespace hlat
