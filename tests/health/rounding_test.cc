// Bounds of what rounding explains in a sum over ranks: sound sums stay below them, by whatever tree and however alike the ranks' terms
// are, up to 256 ranks; the faults that the check of sums is for do not.
#include "health/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "comm/sum.h"
#include "support/host_memory.h"

namespace hlat {
namespace {

struct Sums {
  double error = 0, bound = 0, typical = 0;
};

// The sum over ranks of n normal numbers each.
Sums sum_over_ranks(DType dtype, int ranks, int64_t n) {
  HostMemory memory;
  std::vector<const void*> terms;
  double in = 0, in_sq = 0, out = 0, out_sq = 0;
  for (int r = 0; r < ranks; ++r) {
    const Tensor x = memory.random(dtype, {n}, fmt::format("gradient {} of {}", r, ranks), 1e-3);
    terms.push_back(x.data);
    for (int64_t i = 0; i < n; ++i) in += load_f64(x, i), in_sq += load_f64(x, i) * load_f64(x, i);
  }
  const Tensor y = memory.zeros(dtype, {n});
  sum_in_order(y.data, terms, n, dtype);
  for (int64_t i = 0; i < n; ++i) out += load_f64(y, i), out_sq += load_f64(y, i) * load_f64(y, i);
  return {std::abs(out - in), rounding_bound(dtype, ranks, n, in_sq, out_sq), std::sqrt(out_sq / static_cast<double>(n))};
}

TEST(RoundedOnce, StaysInItsBoundAndOneWrongElementDoesNot) {
  for (const int ranks : {2, 8})
    for (const int64_t n : {int64_t{1}, int64_t{64}, int64_t{4097}, int64_t{1} << 20}) {
      const Sums f32 = sum_over_ranks(DType::f32, ranks, n), narrow = sum_over_ranks(DType::bf16, ranks, n);
      EXPECT_LE(f32.error, f32.bound) << ranks << " ranks, " << n;
      EXPECT_LE(narrow.error, narrow.bound) << ranks << " ranks, " << n;
      EXPECT_LT(f32.bound, 0.05 * f32.typical) << ranks << " ranks, " << n;
      // In bf16 the rounding of n stores hides less than sqrt(n) / 31 typical elements, and no more.
      EXPECT_LT(narrow.bound, std::sqrt(static_cast<double>(n)) / 31 * narrow.typical) << ranks << " ranks, " << n;
    }
}

// Any tree of additions over S ranks has at most these sums over its nodes (rounding.h), by trying all of them.
TEST(RoundedAtEachAddition, NoTreeExceedsWhatTheBoundCounts) {
  for (const int s : {2, 3, 4, 5, 7, 8, 16, 31, 64, 256}) {
    const auto most = [&](const auto& of_node) {
      std::vector<double> best(static_cast<size_t>(s) + 1);
      for (size_t k = 2; k < best.size(); ++k) {
        for (size_t left = 1; left <= k / 2; ++left) best[k] = std::max(best[k], best[left] + best[k - left]);
        best[k] += of_node(static_cast<double>(k));
      }
      return best.back();
    };
    const double ranks = s;
    EXPECT_NEAR(most([&](double k) { return k / ranks; }), (ranks + 1) / 2 - 1 / ranks, 1e-9) << s;
    const double noise = most([&](double k) { return k * (ranks - k) / (ranks * (ranks - 1)); });
    EXPECT_LE(noise, (ranks - 2) * (2 * ranks + 9) / (12 * ranks) + 1e-12) << s;
  }
}

using Terms = std::vector<std::vector<float>>;  // by rank

float narrow(float x) { return to_float(to_bf16(x)); }

// A part that all ranks have, `alike` times as large as the noise of each.
Terms gradients(int ranks, int64_t n, double alike, const std::string& name) {
  const std::vector<double> mean = normals(n, name + " mean");
  Terms terms;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<double> noise = normals(n, fmt::format("{} rank {}", name, r));
    terms.emplace_back();
    for (size_t i = 0; i < mean.size(); ++i) terms.back().push_back(narrow(static_cast<float>(1e-3 * (alike * mean[i] + noise[i]))));
  }
  return terms;
}

std::vector<float> added(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = narrow(a[i] + b[i]);
  return sum;
}

// Ranks [begin, end), rounded at each addition: one after the other as a ring does, or by halves as a tree does.
std::vector<float> ring_sum(const Terms& x, size_t begin, size_t end) {
  std::vector<float> sum = x[begin];
  for (size_t r = begin + 1; r < end; ++r) sum = added(sum, x[r]);
  return sum;
}
std::vector<float> tree_sum(const Terms& x, size_t begin, size_t end) {
  if (end - begin == 1) return x[begin];
  const size_t middle = (begin + end) / 2;
  return added(tree_sum(x, begin, middle), tree_sum(x, middle, end));
}
// Nodes of eight ranks: a ring within, a tree between them.
std::vector<float> ring_then_tree(const Terms& x, size_t begin, size_t end) {
  Terms nodes;
  for (size_t r = begin; r < end; r += 8) nodes.push_back(ring_sum(x, r, std::min(r + 8, end)));
  return tree_sum(nodes, 0, nodes.size());
}

constexpr int64_t kSample = 32;

// Error over bound of each sample.
std::vector<double> ratios(const Terms& x, const std::vector<float>& y) {
  std::vector<double> out;
  for (size_t first = 0; first < y.size(); first += kSample) {
    double squares = 0, sums = 0, errors = 0;
    for (size_t i = first; i < first + kSample; ++i) {
      double exact = 0;
      for (const auto& rank : x)
        exact += static_cast<double>(rank[i]), squares += static_cast<double>(rank[i]) * static_cast<double>(rank[i]);
      sums += exact * exact;
      errors += (static_cast<double>(y[i]) - exact) * (static_cast<double>(y[i]) - exact);
    }
    out.push_back(std::sqrt(errors) / chained_rounding_bound(static_cast<int>(x.size()), kSample, squares, sums));
  }
  return out;
}

constexpr double kAlike[] = {0, 0.06, 0.3, 1, 10, 1000};  // 0.06: the mean is as large as the noise after 256 ranks

TEST(RoundedAtEachAddition, SoundSumsOfUpTo256RanksPass) {
  for (const int ranks : {2, 3, 8, 64, 256})
    for (const double alike : kAlike) {
      const Terms x = gradients(ranks, 64 * kSample, alike, "sound");
      for (const auto& sum : {ring_sum, tree_sum, ring_then_tree}) {
        const std::vector<double> r = ratios(x, sum(x, 0, x.size()));
        EXPECT_LT(*std::max_element(r.begin(), r.end()), 0.8) << ranks << " ranks, alike " << alike;
      }
    }
}

// What one rounding explains is not enough: a ring's sums over 256 ranks exceed it.
TEST(RoundedAtEachAddition, SoundSumsOf256RanksExceedTheBoundOfOneRounding) {
  const Terms x = gradients(256, int64_t{1} << 13, 10, "once");
  const std::vector<float> y = ring_sum(x, 0, x.size());
  double worst = 0;
  for (size_t first = 0; first < y.size(); first += 512) {
    double in = 0, in_sq = 0, out = 0, out_sq = 0;
    for (size_t i = first; i < first + 512; ++i) {
      for (const auto& rank : x) in += static_cast<double>(rank[i]), in_sq += static_cast<double>(rank[i]) * static_cast<double>(rank[i]);
      out += static_cast<double>(y[i]), out_sq += static_cast<double>(y[i]) * static_cast<double>(y[i]);
    }
    worst = std::max(worst, std::abs(out - in) / rounding_bound(DType::bf16, 256, 512, in_sq, out_sq));
  }
  EXPECT_GT(worst, 1);
}

TEST(RoundedAtEachAddition, LostAndDoubledSumsOf256RanksAreSeen) {
  for (const double alike : kAlike) {
    const Terms x = gradients(256, 64 * kSample, alike, "faulty");
    const std::vector<float> sum = ring_sum(x, 0, x.size());
    const auto least = [&](const std::vector<float>& y) {
      const std::vector<double> r = ratios(x, y);
      return *std::min_element(r.begin(), r.end());
    };
    EXPECT_GT(least(std::vector<float>(sum.size())), 1) << "nothing arrived, alike " << alike;
    EXPECT_GT(least(x[0]), 1) << "a rank's own terms stayed, alike " << alike;
    EXPECT_GT(least(added(sum, sum)), 1) << "taken twice, alike " << alike;
  }
  // Half of the ranks lost: where the noise decides, most samples show it.
  const Terms x = gradients(256, 64 * kSample, 0, "half");
  const std::vector<double> half = ratios(x, ring_sum(x, 0, x.size() / 2));
  EXPECT_GT(std::count_if(half.begin(), half.end(), [](double r) { return r > 1; }), static_cast<int64_t>(half.size() / 2));
}

}  // namespace
}  // namespace hlat
