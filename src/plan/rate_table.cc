#include "plan/rate_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace hlat {
namespace {

using LogSize = std::array<double, 3>;

struct RatePoint {
  LogSize at;
  double rate;
};

LogSize log_size(int64_t a, int64_t b, int64_t c) {
  const auto log_of = [](int64_t n) { return std::log(static_cast<double>(std::max<int64_t>(n, 1))); };
  return {log_of(a), log_of(b), log_of(c)};
}

double between(const LogSize& a, const LogSize& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

// Rows within the distance of the one that is next after kNear have weights that fall to nothing there, so that the rate has no jumps.
double shepard(const std::vector<RatePoint>& points, const LogSize& at) {
  constexpr size_t kNear = 6;
  std::vector<std::pair<double, double>> near;  // distance, rate
  for (const RatePoint& p : points) near.emplace_back(between(p.at, at), p.rate);
  std::sort(near.begin(), near.end());
  if (near.front().first < 1e-9) return near.front().second;
  const double radius = near.size() > kNear ? near[kNear].first : 0;
  double weights = 0, sum = 0;
  for (size_t i = 0; i < std::min(near.size(), kNear); ++i) {
    const double d = near[i].first;
    const double root = radius == 0 ? 1 / d : std::max(0.0, radius - d) / (radius * d);
    weights += root * root;
    sum += root * root * std::log(near[i].second);
  }
  return weights > 0 ? std::exp(sum / weights) : near.front().second;  // all at one distance: the radius is theirs
}

// The first of the tests, from strict to loose, that some row passes decides the basis.
template <class Row, class Point, class... Tests>
std::optional<TableRate> nearest_rate(const std::vector<Row>& rows, const LogSize& at, const Point& point, const Tests&... tests) {
  std::optional<TableRate> found;
  const auto look = [&](const auto& test) {
    if (found) return;
    std::vector<RatePoint> points;
    for (const Row& r : rows)
      if (test.second(r)) points.push_back(point(r));
    if (!points.empty()) found = TableRate{shepard(points, at), test.first};
  };
  (look(tests), ...);
  return found;
}

std::optional<TableRate> matmul_rate(const std::vector<MatmulRow>& rows, const TracedOp& op) {
  const auto type = static_cast<DType>(op.dtype), out = static_cast<DType>(op.out);
  const auto point = [](const MatmulRow& r) { return RatePoint{log_size(r.m, r.n, r.k), r.flops_per_s}; };
  const auto same = [&](const MatmulRow& r) { return r.type == type && r.out == out && r.form == op.form; };
  const auto same_layout = [&](const MatmulRow& r) { return r.type == type && r.out == out && (r.form & ~4) == (op.form & ~4); };
  const auto same_out = [&](const MatmulRow& r) { return r.type == type && r.out == out; };
  const auto same_type = [&](const MatmulRow& r) { return r.type == type; };
  const auto other_fp8 = [&](const MatmulRow& r) { return is_fp8(r.type) && is_fp8(type); };
  return nearest_rate(rows, log_size(op.dims[0], op.dims[1], op.dims[2]), point, std::pair{RateBasis::measured, same},
                      std::pair{RateBasis::other_form, same_layout}, std::pair{RateBasis::other_form, same_out},
                      std::pair{RateBasis::other_form, same_type}, std::pair{RateBasis::other_type, other_fp8});
}

std::optional<TableRate> attention_rate(const std::vector<AttentionRow>& rows, const TracedOp& op) {
  const auto type = static_cast<DType>(op.dtype);
  const bool backward = static_cast<OpKind>(op.kind) == OpKind::attention_bwd;
  const auto point = [](const AttentionRow& r) { return RatePoint{log_size(r.heads, r.tokens, r.head_dim), r.flops_per_s}; };
  const auto same = [&](const AttentionRow& r) { return r.type == type && r.backward == backward; };
  return nearest_rate(rows, log_size(op.dims[0], op.dims[1], op.dims[2]), point, std::pair{RateBasis::measured, same});
}

// Straight lines in the logarithms, level beyond both ends.
double between_rows(std::vector<MemoryRow> rows, double bytes) {
  std::sort(rows.begin(), rows.end(), [](const MemoryRow& a, const MemoryRow& b) { return a.bytes < b.bytes; });
  const auto above = std::find_if(rows.begin(), rows.end(), [&](const MemoryRow& r) { return r.bytes >= bytes; });
  if (above == rows.end()) return rows.back().bytes_per_s;
  if (above == rows.begin() || above->bytes == bytes) return above->bytes_per_s;
  const MemoryRow &a = *(above - 1), &b = *above;
  const double share = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
  return std::exp((1 - share) * std::log(a.bytes_per_s) + share * std::log(b.bytes_per_s));
}

std::optional<TableRate> memory_rate(const std::vector<MemoryRow>& all, const TracedOp& op, DType compute) {
  for (const bool same_type : {true, false}) {
    std::vector<MemoryRow> rows;
    for (const MemoryRow& r : all)
      if (r.op == static_cast<OpKind>(op.kind) && (r.type == compute || !same_type)) rows.push_back(r);
    if (!rows.empty()) return TableRate{between_rows(rows, op.bytes), same_type ? RateBasis::measured : RateBasis::other_type};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TableRate> table_rate(const Rates& rates, const TracedOp& op, DType compute) {
  switch (static_cast<OpKind>(op.kind)) {
    case OpKind::matmul: return matmul_rate(rates.matmul, op);
    case OpKind::attention:
    case OpKind::attention_bwd: return attention_rate(rates.attention, op);
    default: return memory_rate(rates.memory_ops, op, compute);
  }
}

}  // namespace hlat
