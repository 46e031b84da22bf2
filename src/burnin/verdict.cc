#include "burnin/verdict.h"

#include <algorithm>
#include <set>

namespace hlat {

namespace {

// Of what is usual on an axis: the lower quartile of the typical times.
std::map<std::string, double> usual_times(const std::vector<LinkTime>& links) {
  std::map<std::string, std::vector<double>> by_axis;
  for (const LinkTime& l : links) by_axis[l.axis].push_back(l.typical);
  std::map<std::string, double> usual;
  for (auto& [axis, times] : by_axis) {
    std::sort(times.begin(), times.end());
    usual[axis] = times[(times.size() - 1) / 4];
  }
  return usual;
}

bool is_slow(const LinkTime& l, double usual, double least) { return l.best > kSlowLink * usual && l.best - usual > least; }

}  // namespace

std::vector<size_t> slow_ranks(const std::vector<Speed>& by_rank, double factor) {
  double fastest = 0;
  for (const Speed& s : by_rank) fastest = std::max(fastest, s.typical);
  std::vector<size_t> slow;
  for (size_t r = 0; r < by_rank.size(); ++r)
    if (by_rank[r].best * factor < fastest) slow.push_back(r);
  return slow;
}

std::vector<SlowPeer> slow_peers(const std::vector<LinkTime>& links, double least_delay) {
  const std::map<std::string, double> usual = usual_times(links);
  std::set<int> sound;  // ranks with a link that is not slow
  for (const LinkTime& l : links)
    if (!is_slow(l, usual.at(l.axis), least_delay)) sound.insert({l.a, l.b});
  std::vector<SlowPeer> slow;
  for (const LinkTime& l : links) {
    const double limit = usual.at(l.axis);
    if (!is_slow(l, limit, least_delay)) continue;
    const bool a = !sound.contains(l.a), b = !sound.contains(l.b);
    // Both or neither of the two: it is the link.
    const SlowPeer peer{.rank = a || !b ? l.a : l.b, .other = a == b ? l.b : -1, .seconds = l.best, .usual = limit, .axis = l.axis};
    const auto known = std::find_if(slow.begin(), slow.end(), [&](const SlowPeer& s) { return s.rank == peer.rank && s.other == -1; });
    if (peer.other != -1 || known == slow.end())
      slow.push_back(peer);
    else if (peer.seconds < known->seconds)
      *known = peer;
  }
  // A link of two ranks of which one has been named is explained by that.
  std::set<int> named;
  for (const SlowPeer& s : slow)
    if (s.other == -1) named.insert(s.rank);
  std::erase_if(slow, [&](const SlowPeer& s) { return s.other != -1 && (named.contains(s.rank) || named.contains(s.other)); });
  return slow;
}

std::vector<WrongPeer> wrong_peers(std::vector<WrongLink> links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end(), [](const WrongLink& a, const WrongLink& b) { return !(a < b) && !(b < a); }),
              links.end());
  std::vector<WrongPeer> peers;
  while (!links.empty()) {
    std::map<int, std::pair<int, int>> counts;  // of links, and of those that it receives
    for (const WrongLink& l : links) {
      ++counts[l.from].first;
      ++counts[l.to].first;
      ++counts[l.to].second;
    }
    const auto worst = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    WrongPeer peer{.rank = worst->first};
    for (const WrongLink& l : links) {
      if (l.to == peer.rank) peer.from.push_back(l.from);
      if (l.from == peer.rank) peer.to.push_back(l.to);
    }
    std::erase_if(links, [&](const WrongLink& l) { return l.from == peer.rank || l.to == peer.rank; });
    peers.push_back(std::move(peer));
  }
  return peers;
}

std::vector<Minority> minorities(const std::vector<std::map<std::string, std::string>>& facts_by_rank) {
  std::map<std::string, std::map<std::string, std::vector<size_t>>> by_fact;
  for (size_t r = 0; r < facts_by_rank.size(); ++r)
    for (const auto& [fact, value] : facts_by_rank[r]) by_fact[fact][value].push_back(r);
  std::vector<Minority> found;
  for (auto& [fact, values] : by_fact) {
    if (values.size() < 2) continue;
    // Of values that are equally frequent, that of the lowest rank.
    const auto most = std::max_element(values.begin(), values.end(), [](const auto& a, const auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second.front() > b.second.front();
    });
    Minority m{.fact = fact, .usual = most->first, .others = {}};
    for (const auto& [value, ranks] : values)
      if (value != m.usual) m.others[value] = ranks;
    found.push_back(std::move(m));
  }
  return found;
}

const char* name_of(Collective op) {
  switch (op) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::all_gather: return "all_gather";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::send_recv: return "send_recv";
  }
  return "";
}

double bus_factor(Collective op, int ranks) {
  const double share = ranks > 0 ? static_cast<double>(ranks - 1) / ranks : 0;
  switch (op) {
    case Collective::all_reduce: return 2 * share;
    case Collective::all_gather:
    case Collective::reduce_scatter: return share;
    case Collective::send_recv: return 1;
  }
  return 1;
}

}  // namespace hlat
