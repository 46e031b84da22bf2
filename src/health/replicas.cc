#include "health/replicas.h"

#include <algorithm>
#include <map>

namespace hlat {

namespace {

std::string names_of(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace

std::optional<std::string> describe_difference(const std::vector<uint64_t>& fingerprints, const std::vector<int>& ranks) {
  HLAT_CHECK(fingerprints.size() == ranks.size() && !ranks.empty(), "{} fingerprints of {} ranks", fingerprints.size(), ranks.size());
  std::map<uint64_t, std::vector<int>> holders;  // by fingerprint
  for (size_t i = 0; i < ranks.size(); ++i) holders[fingerprints[i]].push_back(ranks[i]);
  if (holders.size() == 1) return {};
  std::vector<std::vector<int>> sets;
  for (const auto& [fingerprint, members] : holders) sets.push_back(members);
  std::sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.size() != b.size() ? a.size() > b.size() : a < b; });
  if (sets[0].size() == 1) return fmt::format("{} {}differ", names_of(ranks), ranks.size() == 2 ? "" : "all ");
  if (sets[0].size() > sets[1].size()) {
    std::vector<int> others;
    for (const int rank : ranks)
      if (std::find(sets[0].begin(), sets[0].end(), rank) == sets[0].end()) others.push_back(rank);
    return fmt::format("{} agree, {} {}", names_of(sets[0]), names_of(others), others.size() == 1 ? "differs" : "differ");
  }
  std::vector<std::string> parts;
  parts.reserve(sets.size());
  for (const auto& members : sets) parts.push_back(names_of(members));
  return fmt::format("no majority among {}", fmt::join(parts, " and "));
}

Replicas::Replicas(const Mesh& mesh, Axis axis, const ParamStore& params, std::vector<Item> items, Region& io)
    : comm_(mesh.along(axis)), ranks_(mesh.ranks_along(axis)), params_(params), items_(std::move(items)) {
  if (comm_.size() == 1) items_.clear();
  if (items_.empty()) return;
  sums_ = io.alloc(DType::i32, {comm_.size() * 2 * static_cast<int64_t>(items_.size())}, "checksums over " + comm_.name());
}

void Replicas::take(Ops& ops, size_t item, const Tensor& rows) const {
  const int64_t at = 2 * (comm_.rank() * static_cast<int64_t>(items_.size()) + static_cast<int64_t>(item));
  ops.checksum(sums_.rows(at, at + 2), rows);
}

std::optional<std::string> Replicas::difference(Device& device, const std::string& what) const {
  if (items_.empty()) return {};
  const int64_t own = 2 * static_cast<int64_t>(items_.size()), begin = comm_.rank() * own;
  comm_.all_gather(sums_, sums_.rows(begin, begin + own));
  std::vector<int32_t> halves(static_cast<size_t>(sums_.numel()));
  device.download(halves.data(), sums_);
  comm_.check();  // a group that gave up lets the device go, with any values
  const auto fingerprint = [&](size_t rank, size_t item) {
    const int32_t* pair = halves.data() + 2 * (rank * items_.size() + item);
    return uint64_t{static_cast<uint32_t>(pair[0])} | uint64_t{static_cast<uint32_t>(pair[1])} << 32;
  };
  std::string first;
  int more = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    std::vector<uint64_t> fingerprints;
    for (size_t r = 0; r < ranks_.size(); ++r) fingerprints.push_back(fingerprint(r, i));
    const auto who = describe_difference(fingerprints, ranks_);
    if (!who) continue;
    if (first.empty())
      first = fmt::format("{} of {} differ between {} ranks: {}", what, params_.spec(items_[i].param).name, comm_.name(), *who);
    else
      ++more;
  }
  if (first.empty()) return {};
  if (more > 0) first += fmt::format("; so do {} more {}", more, more == 1 ? "tensor" : "tensors");
  return first;
}

}  // namespace hlat
