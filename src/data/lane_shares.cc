#include "data/lane_shares.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"

namespace hlat {
namespace {

// Up to so many documents each one's size is looked at, which takes about a second. Beyond, or with many documents for each lane, shares
// of equally many documents are about equal in size.
constexpr uint64_t kMostWalked = uint64_t{1} << 20;
constexpr uint64_t kManyForALane = 64;
constexpr size_t kEpochsKept = 4;

uint64_t walk_extent(const Mixture& mixture, size_t source) {
  const DocumentSource& s = *mixture.sources[source];
  uint64_t sum = 0;
  for (uint64_t d = 0; d < s.documents(); ++d) sum += mixture.has(source, d) ? extent_of(s, d) : 0;
  return sum;
}

}  // namespace

double split_extent(const Mixture& mixture, size_t source) {
  const DocumentSource& s = *mixture.sources[source];
  if (s.documents() <= kMostWalked) return static_cast<double>(walk_extent(mixture, source));
  const double kept = mixture.split == Split::train ? 1 - mixture.validation : mixture.validation;
  return static_cast<double>(s.bytes() + s.documents()) * kept;
}

LaneShares::Borders LaneShares::by_count(size_t source) const {
  const uint64_t n = mixture_.sources[source]->documents();
  Borders borders;
  for (uint64_t l = 0; l <= lanes_; ++l) borders.push_back({.position = n / lanes_ * l + n % lanes_ * l / lanes_, .at = 0});
  return borders;
}

LaneShares::Borders LaneShares::by_size(size_t source, uint64_t epoch) const {
  const DocumentSource& s = *mixture_.sources[source];
  const auto total = static_cast<double>(walk_extent(mixture_, source));
  const double share = total / static_cast<double>(lanes_);
  Borders borders = {{.position = 0, .at = 0}};
  double behind = 0;
  for (uint64_t p = 0; p < s.documents() && borders.size() < lanes_; ++p) {
    const uint64_t document = mixture_.document_at(source, epoch, p);
    if (!mixture_.has(source, document)) continue;
    const auto extent = static_cast<double>(extent_of(s, document));
    const bool cuts = extent > mixture_.cut_share * share;
    while (borders.size() < lanes_) {
      const double inside = share * static_cast<double>(borders.size()) - behind;
      if (inside >= extent) break;
      const bool next = !cuts && inside > extent / 2;
      // The end itself is no place to cut: nothing but the end token would be left.
      const uint64_t at = std::min(static_cast<uint64_t>(inside), std::max<uint64_t>(1, s.size(document)) - 1);
      borders.push_back({.position = next ? p + 1 : p, .at = cuts ? at : 0});
    }
    behind += extent;
  }
  borders.resize(lanes_ + 1, {.position = s.documents(), .at = 0});
  return borders;
}

std::shared_ptr<const LaneShares::Borders> LaneShares::borders(size_t source, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  known_.resize(mixture_.sources.size());
  auto& epochs = known_[source];
  std::shared_ptr<const Borders>& entry = epochs[epoch];
  if (entry == nullptr) {
    const uint64_t n = mixture_.sources[source]->documents();
    const bool walks = n <= kMostWalked || n < kManyForALane * lanes_;
    entry = std::make_shared<const Borders>(walks ? by_size(source, epoch) : by_count(source));
  }
  const std::shared_ptr<const Borders> found = entry;
  while (epochs.size() > kEpochsKept) epochs.erase(epochs.begin());
  return found;
}

LaneShare LaneShares::share(size_t source, uint64_t epoch, uint64_t lane) {
  HLAT_CHECK(mixture_.sources[source]->documents() > 0 && lane < lanes_, "lane {} of {}", lane, lanes_);
  const NoiseKey key{mixture_.seed, hash_name("lanes of " + mixture_.names[source]), Noise::data, static_cast<uint32_t>(epoch)};
  const uint64_t turn = epoch == 0 ? 0 : RandomStream(key).below(lanes_);
  const auto part = static_cast<size_t>((lane + turn) % lanes_);
  const std::shared_ptr<const Borders> all = borders(source, epoch);
  return {.begin = (*all)[part], .end = (*all)[part + 1]};
}

}  // namespace hlat
