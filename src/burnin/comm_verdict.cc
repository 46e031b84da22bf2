#include "burnin/comm_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/format.h"

namespace hlat {

namespace {

std::string listed(const std::vector<int>& ranks) { return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", ")); }

std::string detail_of(const WrongData& w) {
  return fmt::format("{} {} of {}: element {} is {}, not {}", w.axis, name_of(w.op), format_bytes(static_cast<uint64_t>(w.bytes)),
                     w.element, w.got, w.known);
}

class CommJudge {
 public:
  explicit CommJudge(const std::vector<std::string>& hosts) : hosts_(hosts) {}

  void add(int rank, std::string words) {
    findings_.push_back({.part = "comm", .rank = rank, .host = hosts_[static_cast<size_t>(rank)], .words = std::move(words)});
  }

  // Messages tell from whom they came: the ranks that explain all of them.
  void wrong_messages(const std::vector<WrongData>& wrong) {
    std::vector<WrongLink> links;
    for (const WrongData& w : wrong) links.push_back({.from = w.from, .to = w.rank});
    for (const WrongPeer& p : wrong_peers(links)) {
      const auto of_peer =
          std::find_if(wrong.begin(), wrong.end(), [&](const WrongData& w) { return w.rank == p.rank || w.from == p.rank; });
      std::string words;
      if (!p.from.empty()) words = "what comes from " + listed(p.from);
      if (!p.to.empty()) words += (words.empty() ? "" : " and ") + ("what goes to " + listed(p.to));
      add(p.rank, fmt::format("wrong: {}: {}", words, detail_of(*of_peer)));
    }
  }

  // Sums alone were wrong: all that is known is who has them.
  void wrong_sums(const std::vector<WrongData>& wrong) {
    std::vector<int> told;
    for (const WrongData& w : wrong) {
      if (std::find(told.begin(), told.end(), w.rank) != told.end()) continue;
      told.push_back(w.rank);
      add(w.rank, "wrong: " + detail_of(w));
    }
  }

  void slow(const std::vector<LinkTime>& links, double least_delay) {
    for (const SlowPeer& s : slow_peers(links, least_delay)) {
      const std::string times = fmt::format("{:.3g} ms there and back, {:.3g} is usual", s.seconds * 1e3, s.usual * 1e3);
      if (s.other < 0)
        add(s.rank, fmt::format("slow: messages with all its neighbours along {}: {}", s.axis, times));
      else
        add(s.rank,
            fmt::format("slow: the link with rank {} on {} along {}: {}", s.other, hosts_[static_cast<size_t>(s.other)], s.axis, times));
    }
  }

  std::vector<Finding> take() { return std::move(findings_); }

 private:
  const std::vector<std::string>& hosts_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<CommRow> comm_rows(const std::vector<CommMeasured>& by_rank) {
  using Key = std::tuple<std::string, Collective, int64_t>;
  std::vector<Key> order;
  std::map<Key, std::map<int, CommTime>> groups;  // a group's time is that of its slowest rank
  for (const CommMeasured& m : by_rank)
    for (const CommTime& t : m.times) {
      const Key key{t.axis, t.op, t.bytes};
      if (!groups.contains(key)) order.push_back(key);
      CommTime& slowest = groups[key].try_emplace(t.group, t).first->second;
      if (t.typical > slowest.typical) slowest = t;
    }
  std::vector<CommRow> rows;
  for (const Key& key : order) {
    const auto by_time = [](const auto& a, const auto& b) { return a.second.typical < b.second.typical; };
    const auto [best, worst] = std::minmax_element(groups[key].begin(), groups[key].end(), by_time);
    CommRow row{.axis = std::get<0>(key),
                .op = std::get<1>(key),
                .ranks = worst->second.ranks,
                .bytes = std::get<2>(key),
                .seconds = worst->second.typical,
                .best_seconds = best->second.typical,
                .slowest = -1};
    if (groups[key].size() > 1) row.slowest = worst->first;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Finding> judge_comm(const std::vector<CommMeasured>& by_rank, const std::vector<std::string>& hosts, double least_delay) {
  std::vector<WrongData> messages, sums;
  std::vector<LinkTime> links;
  for (const CommMeasured& m : by_rank) {
    for (const WrongData& w : m.wrong) (w.from >= 0 ? messages : sums).push_back(w);
    links.insert(links.end(), m.links.begin(), m.links.end());
  }
  CommJudge judge(hosts);
  judge.wrong_messages(messages);
  if (messages.empty()) judge.wrong_sums(sums);  // which else follow from the messages
  judge.slow(links, least_delay);
  return judge.take();
}

}  // namespace hlat
