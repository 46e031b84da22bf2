#include "eval/difference.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "eval/significance.h"

namespace hlat {

namespace {

// Values of one metric of the examples that two models have answered.
struct Pairs {
  std::vector<double> differences;
  int64_t only_first = 0, only_other = 0;  // examples in which one has more
  bool binary = true;
};

Pairs pairs_of(const SampleValues& first, const SampleValues& other, const std::string& key) {
  Pairs pairs;
  for (const auto& [sample, a] : first) {
    const auto b = other.find(sample);
    if (b == other.end() || a.target != b->second.target || !a.values.contains(key) || !b->second.values.contains(key)) continue;
    const double x = a.values.at(key), y = b->second.values.at(key);
    pairs.binary = pairs.binary && (x == 0 || x == 1) && (y == 0 || y == 1);
    pairs.only_first += x > y ? 1 : 0, pairs.only_other += y > x ? 1 : 0;
    pairs.differences.push_back(x - y);
  }
  return pairs;
}

}  // namespace

std::string_view name_of(TestKind kind) {
  switch (kind) {
    case TestKind::none: return "";
    case TestKind::mcnemar: return "McNemar";
    case TestKind::paired: return "paired z";
    case TestKind::unpaired: return "z";
  }
  return "";
}

Difference difference(const Measured& first, const Measured& other) {
  Difference d;
  if (!first.metric || !other.metric) return d;
  d.value = first.metric->value - other.metric->value;
  d.p = unpaired_p(d.value, first.metric->error, other.metric->error);
  if (!std::isnan(d.p)) d.test = TestKind::unpaired;
  return d;
}

Difference difference(const Measured& first, const Measured& other, const SampleValues& first_samples, const SampleValues& other_samples) {
  Difference d = difference(first, other);
  if (std::isnan(d.value)) return d;
  const Pairs pairs = pairs_of(first_samples, other_samples, first.metric->key);
  if (pairs.differences.size() < 2) return d;
  d.pairs = static_cast<int64_t>(pairs.differences.size());
  const bool all = d.pairs == first.examples && d.pairs == other.examples;
  if (!all && !first.metric->share) return {};
  if (!all) d.value = std::accumulate(pairs.differences.begin(), pairs.differences.end(), 0.0) / static_cast<double>(d.pairs);
  d.test = pairs.binary ? TestKind::mcnemar : TestKind::paired;
  d.p = pairs.binary ? mcnemar_p(pairs.only_first, pairs.only_other) : paired_p(pairs.differences);
  return d;
}

}  // namespace hlat
