#include "data/mixture.h"

#include <algorithm>
#include <cmath>
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

// Where a lane begins in the rhythm of a source that has share w and documents of typical length d. Uniform over [0, d) would be right for
// ever after, but since lanes begin with whole documents, a source of long ones would be short of tokens until its first are over. So w / 2
// of the lanes have a phase below 0 and begin with this source: the mean share over the first d tokens is then w.
double phase(const NoiseKey& key, uint64_t lane, uint64_t typical_length, double w) {
  const double unit = RandomStream(key, lane).next_unit(), ahead = w / 2;
  const double d = static_cast<double>(typical_length);
  return std::floor(unit < ahead ? -unit * d : (unit - ahead) / (1 - ahead) * d);
}

}  // namespace

size_t Mixture::choose(uint64_t lane, size_t segment, const LaneCount* counts) const {
  const std::vector<double>& weights = segments[segment].weights;
  size_t best = sources.size();
  double best_key = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    if (weights[s] <= 0) continue;
    const NoiseKey key{seed, hash_name("mixture " + names[s]), Noise::data, static_cast<uint32_t>(segment)};
    const double drawn = static_cast<double>(counts[s].tokens) + phase(key, lane, sources[s]->typical_length(), weights[s]);
    const double value = drawn / weights[s];
    if (best == sources.size() || value < best_key) best = s, best_key = value;
  }
  HLAT_CHECK(best < sources.size(), "segment {} draws from no source", segment);
  return best;
}

uint64_t Mixture::document_at(size_t source, uint64_t position) const {
  const uint64_t n = sources[source]->documents();
  if (n == 0) return position;
  const NoiseKey key{seed, hash_name("order of " + names[source]), Noise::data, static_cast<uint32_t>(position / n)};
  return Permutation(key, n)(position % n);
}

bool Mixture::has(size_t source, uint64_t document) const {
  if (validation <= 0) return split == Split::train;
  return is_validation(sources[source]->hash(document), validation) == (split == Split::validation);
}

}  // namespace hlat
