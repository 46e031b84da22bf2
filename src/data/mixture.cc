#include "data/mixture.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "data/permutation.h"

namespace hlat {

bool is_validation(uint64_t hash, double share) {
  if (share <= 0) return false;
  if (share >= 1) return true;
  // Mixed once more: other uses of the hash must not decide with the same bits.
  const auto word = philox({static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), 0, 0}, {0x76616c69u, 0x64617465u});
  return static_cast<double>(static_cast<uint64_t>(word[1]) << 32 | word[0]) < share * 0x1p64;
}

std::vector<double> shares(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  HLAT_CHECK(sum > 0, "{} weights sum to {}", weights.size(), sum);
  for (double& w : weights) w /= sum;
  return weights;
}

Mixture single_source(const DocumentSource& source, uint64_t seed) {
  return {.sources = {&source}, .names = {source.name()}, .segments = {{1, {1.0}}}, .seed = seed};
}

void append_segment(std::vector<Segment>& segments, Segment next) {
  if (segments.empty() || segments.back().weights != next.weights) segments.push_back(std::move(next));
}

size_t Mixture::segment_at(int64_t step) const {
  const auto after = std::upper_bound(segments.begin(), segments.end(), step, [](int64_t s, const Segment& g) { return s < g.from_step; });
  HLAT_CHECK(after != segments.begin(), "no segment has step {}", step);
  return static_cast<size_t>(after - segments.begin()) - 1;
}

namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // (sqrt(5) - 1) / 2 in units of 2^-64
constexpr uint64_t kRoot2 = 0x6a09e667f3bcc909;   // sqrt(2) - 1

// floor(n x) for x in units of 2^-64.
uint64_t scaled(uint64_t x, uint64_t n) {
  const uint64_t high = (x >> 32) * n, low = (x & 0xffffffff) * n;  // n is below 2^32
  return (high + (low >> 32)) >> 32;
}

}  // namespace

size_t Mixture::source_of(uint64_t row, uint64_t lane, uint64_t lanes) const {
  HLAT_CHECK(lane < lanes && lanes < uint64_t{1} << 32, "lane {} of {}", lane, lanes);
  const std::vector<double>& weights = segments[segment_at(static_cast<int64_t>(row) + 1)].weights;
  const auto start = philox_block({seed, hash_name("mixture"), Noise::data, 0}, 0);
  const uint64_t turn = (uint64_t{start[0]} << 32) + row * kGolden, phase = (uint64_t{start[1]} << 32) + row * kRoot2;
  const uint64_t place = (lane + scaled(turn, lanes)) % lanes;
  const double unit = (static_cast<double>(place) + static_cast<double>(phase >> 11) * 0x1p-53) / static_cast<double>(lanes);
  size_t last = weights.size();
  double sum = 0;
  for (size_t s = 0; s < weights.size(); ++s) {
    if (weights[s] <= 0) continue;
    last = s;
    sum += weights[s];
    if (unit < sum) break;
  }
  HLAT_CHECK(last < weights.size(), "row {} draws from no source", row);
  return last;
}

std::vector<int64_t> Mixture::rows_by_source(int64_t step, uint64_t lanes) const {
  std::vector<int64_t> rows(names.size());
  for (uint64_t lane = 0; lane < lanes; ++lane) ++rows[source_of(static_cast<uint64_t>(step) - 1, lane, lanes)];
  return rows;
}

uint64_t Mixture::document_at(size_t source, uint64_t epoch, uint64_t position) const {
  const uint64_t n = sources[source]->documents();
  if (n == 0) return position;
  const NoiseKey key{seed, hash_name("order of " + names[source]), Noise::data, static_cast<uint32_t>(epoch)};
  return Permutation(key, n)(position);
}

bool Mixture::has(size_t source, uint64_t document) const {
  if (validation <= 0) return split == Split::train;
  return is_validation(sources[source]->hash(document), validation) == (split == Split::validation);
}

}  // namespace hlat
