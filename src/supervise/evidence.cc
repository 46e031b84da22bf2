#include "supervise/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/cost.h"
#include "supervise/words.h"

namespace hlat {

namespace {

// "dp all_reduce 1234 for 9.6 s (waits for ranks 1, 3)" of each operation that is open.
std::string operations_of(const RankView& v, const WaitGraph& graph) {
  std::map<std::string, std::pair<const Wait*, std::vector<int>>> open;
  for (const Wait& w : graph.waits) {
    if (w.from != v.rank) continue;
    auto& [first, targets] = open[operation_name(w)];
    if (first == nullptr) first = &w;
    targets.push_back(w.to);
  }
  std::string text;
  for (auto& [name, found] : open) {
    auto& [wait, targets] = found;
    std::sort(targets.begin(), targets.end());
    text += fmt::format("; in {} for {:.1f} s, {} {}{}", name, wait->since_s,
                        wait->reason == WaitReason::lost && !v.stopped() ? "lacks a message of" : "waits for", ranks_text(targets),
                        wait->in_background ? ", in the background" : "");
  }
  return text;
}

std::string line_of(const RankView& v, const WaitGraph& graph) {
  std::string text = fmt::format("rank {}: {} pid {}, {}, {}", v.rank, v.host, v.pid, state_text(v.process), doing_text(v));
  text += operations_of(v, graph);
  text += fmt::format("; last progress {:.1f} s ago", v.silent_s);
  if (v.ended) text += fmt::format("; ended with code {}: {}", v.exit_code, v.reason);
  return text;
}

std::string group_name(const FlightRing& ring, int group) {
  if (group < 0 || group >= kFlightGroups) return "?";
  std::string name;
  for (const FlightWord<char>& c : ring.groups[static_cast<size_t>(group)].name.text) {
    if (c == 0) break;
    name += c;
  }
  return name;
}

std::string operation_of(const FlightRing& ring, const FlightEvent& e) {
  const auto kind = static_cast<CommKind>(std::min<int>(e.what, kCommKinds - 1));
  const std::string group = group_name(ring, e.group);
  if (kind == CommKind::send || kind == CommKind::recv)
    return fmt::format("{} {} {} {}", group, name_of(kind), kind == CommKind::send ? "to" : "from", e.peer);
  return fmt::format("{} {} {}", group, name_of(kind), e.number);
}

std::string words_of(const FlightRing& ring, const FlightEvent& e) {
  switch (e.kind) {
    case FlightKind::phase: return fmt::format("phase: {}", name_of(static_cast<FlightPhase>(std::min<int>(e.what, kFlightPhases - 1))));
    case FlightKind::step: return fmt::format("step {}", e.number);
    case FlightKind::action: {
      const auto action = static_cast<FlightAction>(std::min<int>(e.what, kFlightActions - 1));
      const bool micro = action == FlightAction::load || action == FlightAction::forward || action == FlightAction::backward;
      return micro ? fmt::format("{}, micro-batch {}", name_of(action), e.number) : std::string(name_of(action));
    }
    case FlightKind::op: return fmt::format("op {}", name_of(static_cast<OpKind>(std::min<int>(e.what, kOpKinds - 1))));
    case FlightKind::enter: return "enters " + operation_of(ring, e);
    case FlightKind::leave: return "leaves " + operation_of(ring, e);
    case FlightKind::none: break;
  }
  return "nothing";
}

}  // namespace

std::string evidence_text(const RankViews& views) {
  const WaitGraph graph = wait_graph(views);
  std::string text;
  for (size_t r = 0; r < views.size(); ++r)
    text += (views[r] ? line_of(*views[r], graph) : fmt::format("rank {}: nothing is known of it", r)) + "\n";
  return text;
}

std::string events_text(const RingReader& ring, size_t most) {
  std::vector<FlightEvent> events = ring.events();
  if (events.size() > most) events.erase(events.begin(), events.end() - static_cast<int64_t>(most));
  if (events.empty()) return {};
  const uint64_t last = events.back().time_ns;
  std::string text;
  for (const FlightEvent& e : events)
    text += fmt::format("{:12.6f} s  {}\n", (static_cast<double>(e.time_ns) - static_cast<double>(last)) * 1e-9, words_of(ring.ring(), e));
  return text;
}

}  // namespace hlat
