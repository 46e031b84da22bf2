#include "supervise/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/cost.h"

namespace hlat {

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i > 2)
      parts.push_back(fmt::format("{} to {}", ranks[i], ranks[end - 1]));
    else
      for (size_t k = i; k < end; ++k) parts.push_back(fmt::format("{}", ranks[k]));
    i = end;
  }
  return fmt::format("ranks {}", fmt::join(parts, ", "));
}

std::string doing_text(const RankView& v) {
  if (v.phase == FlightPhase::start) return fmt::format("in the start-up, {}", v.phase_words);
  std::string text =
      v.phase == FlightPhase::training ? fmt::format("in step {}", v.step) : fmt::format("in {} after step {}", v.phase_words, v.step);
  if (v.phase == FlightPhase::training) text += fmt::format(", {}", name_of(v.action));
  if (v.micro >= 0) text += fmt::format(" of micro-batch {}", v.micro);
  const bool computes = v.action != FlightAction::none && v.action != FlightAction::load && v.op < kOpKinds;
  if (computes) text += fmt::format(", op {}", name_of(static_cast<OpKind>(v.op)));
  return text;
}

std::string state_text(char process) {
  switch (process) {
    case 'R': return "running";
    case 'S':
    case 'I': return "sleeping";
    case 'D': return "waiting for a device or disk";
    case 'T':
    case 't': return "stopped";
    case 'Z':
    case 'X': return "gone";
    default: return "in an unknown state";
  }
}

std::string waiting_text(const std::vector<Wait>& waits) {
  struct Place {
    std::set<int> ranks;
    double since_s = 0;
  };
  std::map<std::string, Place> places;
  for (const Wait& w : waits) {
    Place& place = places[operation_name(w)];
    place.ranks.insert(w.from);
    place.since_s = std::max(place.since_s, w.since_s);
  }
  std::vector<std::pair<std::string, Place>> sorted(places.begin(), places.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.ranks.size() > b.second.ranks.size(); });
  std::vector<std::string> parts;
  for (const auto& [name, place] : sorted) {
    const size_t n = place.ranks.size();
    parts.push_back(fmt::format("{} rank{} wait{} in {} ({}) for {:.1f} s", n, n == 1 ? "" : "s", n == 1 ? "s" : "", name,
                                ranks_text({place.ranks.begin(), place.ranks.end()}), place.since_s));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace hlat
