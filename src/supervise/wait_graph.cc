#include "supervise/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace hlat {

namespace {

bool is_message(const GroupView& g) {
  const auto kind = static_cast<CommKind>(g.kind);
  return kind == CommKind::send || kind == CommKind::recv;
}

CommKind kind_of(const GroupView& g) { return static_cast<CommKind>(std::min<int>(g.kind, kCommKinds - 1)); }

// Inside operation n; messages of the group come after all operations that were entered.
bool is_inside(const GroupView& g, uint64_t n) { return g.open && g.entered == n && !is_message(g); }

// How far apart the ranks of a group's neighbours are; 0: not known. Ranks are numbered pp outermost, then dp, tp innermost.
int stride_of(const RankView& v, const std::string& group) {
  if (group == "world") return 1;
  if (v.tp <= 0 || v.pp <= 0 || v.dp <= 0) return 0;
  if (group == "tp" || group == "kv") return 1;
  if (group == "dp") return v.tp;
  if (group == "pp") return v.tp * v.dp;
  return group == "ends" ? v.tp * v.dp * (v.pp - 1) : 0;
}

// A member of a group, as another rank sees it.
struct Member {
  int index = 0;  // in the group
  int rank = 0;
  const RankView* view = nullptr;    // null: no view of this rank
  const GroupView* group = nullptr;  // null: it does not know the group yet
  bool out() const { return view == nullptr || view->gone() || view->ended; }
};

class GraphMaker {
 public:
  explicit GraphMaker(const RankViews& views) : views_(views) {
    for (const auto& v : views_)
      if (v)
        for (const GroupView& g : v->groups) known_[{g.id, g.rank}] = {.index = g.rank, .rank = v->rank, .view = &*v, .group = &g};
  }

  WaitGraph make() {
    for (const auto& v : views_)
      if (v && !v->gone() && !v->ended) add_waits(*v);
    return std::move(graph_);
  }

 private:
  std::vector<Member> others(const RankView& v, const GroupView& g) const {
    std::vector<Member> found;
    const int stride = stride_of(v, g.name);
    for (int i = 0; i < g.size; ++i) {
      if (i == g.rank) continue;
      if (const auto known = known_.find({g.id, i}); known != known_.end()) {
        found.push_back(known->second);
        continue;
      }
      const int rank = stride > 0 ? v.rank + (i - g.rank) * stride : -1;
      if (rank < 0 || rank >= static_cast<int>(views_.size())) continue;
      const auto& view = views_[static_cast<size_t>(rank)];
      found.push_back({.index = i, .rank = rank, .view = view ? &*view : nullptr});
    }
    return found;
  }

  void add(const RankView& v, const GroupView& g, const Member& to, WaitReason reason, uint64_t number) {
    graph_.waits.push_back({.from = v.rank,
                            .to = to.rank,
                            .reason = reason,
                            .group = g.name,
                            .kind = kind_of(g),
                            .known_kind = g.open || number == g.entered,
                            .number = is_message(g) && g.open ? 0 : number,
                            .in_background = g.queued && !g.awaited,
                            .since_s = g.open ? g.since_s : v.silent_s});
  }

  void add_waits(const RankView& v) {
    bool in_call = false;
    for (const GroupView& g : v.groups) {
      if (!g.open) continue;
      in_call = in_call || !g.queued || g.awaited;
      if (is_message(g))
        add_message(v, g);
      else
        add_collective(v, g);
    }
    if (in_call || v.action != FlightAction::read_back) return;
    for (const GroupView& g : v.groups)
      if (g.on_stream) add_late(v, g, others(v, g));
  }

  void add_message(const RankView& v, const GroupView& g) {
    for (const Member& m : others(v, g))
      if (m.index == g.peer) add(v, g, m, WaitReason::message, 0);
  }

  // Members that have not come; returns whether there are any. On a stream each may be at an operation of its own.
  bool add_late(const RankView& v, const GroupView& g, const std::vector<Member>& members) {
    bool any = false;
    for (const Member& m : members) {
      if (m.group != nullptr && m.group->entered >= g.entered) continue;
      any = true;
      add(v, g, m, WaitReason::late, g.on_stream && m.group != nullptr ? m.group->entered + 1 : g.entered);
    }
    return any;
  }

  void add_collective(const RankView& v, const GroupView& g) {
    const std::vector<Member> members = others(v, g);
    const auto named = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.index == g.peer; });
    const Member* peer = named == members.end() ? nullptr : &*named;
    // A rank of a broadcast waits for its parent alone: others may well come later.
    const bool one_source = kind_of(g) == CommKind::broadcast && peer != nullptr;
    if (!one_source && add_late(v, g, members)) return;
    if (peer != nullptr) {
      const bool late = peer->group == nullptr || peer->group->entered < g.entered;
      const bool left = !late && !is_inside(*peer->group, g.entered);
      return add(v, g, *peer, late ? WaitReason::late : left ? WaitReason::lost : WaitReason::inside, g.entered);
    }
    add_unnamed(v, g, members);
  }

  // All have entered, and the call does not say whom it waits for: the first kind of members there is.
  void add_unnamed(const RankView& v, const GroupView& g, const std::vector<Member>& members) {
    const auto inside = [&](const Member& m) { return m.group != nullptr && is_inside(*m.group, g.entered); };
    const auto held = [&](const Member& m) { return inside(m) && (m.out() || m.view->stopped()); };
    const auto left = [&](const Member& m) { return m.group != nullptr && !inside(m); };
    const auto add_all = [&](const std::function<bool(const Member&)>& which, WaitReason reason) {
      bool any = false;
      for (const Member& m : members)
        if (which(m)) add(v, g, m, reason, g.entered), any = true;
      return any;
    };
    if (add_all(held, WaitReason::inside) || add_all(left, WaitReason::lost)) return;
    add_all(inside, WaitReason::inside);
  }

  const RankViews& views_;
  std::map<std::pair<uint64_t, int>, Member> known_;  // by id of the group and index in it
  WaitGraph graph_;
};

// For each rank, whom it waits for in the foreground; a rank at which chains end waits for nobody.
std::vector<std::vector<int>> foreground(const WaitGraph& graph, size_t ranks) {
  std::vector<std::vector<int>> to(ranks);
  for (const Wait& w : graph.waits)
    if (!w.in_background) to[static_cast<size_t>(w.from)].push_back(w.to);
  for (const int end : graph.ends) to[static_cast<size_t>(end)].clear();
  return to;
}

std::vector<bool> reached_from(const std::vector<std::vector<int>>& to, int rank) {
  std::vector<bool> seen(to.size());
  std::vector<int> open{rank};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const int next : to[static_cast<size_t>(at)])
      if (!seen[static_cast<size_t>(next)]) seen[static_cast<size_t>(next)] = true, open.push_back(next);
  }
  return seen;
}

std::vector<std::vector<int>> reversed(const std::vector<std::vector<int>>& to) {
  std::vector<std::vector<int>> from(to.size());
  for (size_t r = 0; r < to.size(); ++r)
    for (const int target : to[r]) from[static_cast<size_t>(target)].push_back(static_cast<int>(r));
  return from;
}

// Ranks from which a chain comes to an end.
std::vector<bool> ending(const WaitGraph& graph, const std::vector<std::vector<int>>& to) {
  const std::vector<std::vector<int>> from = reversed(to);
  std::vector<bool> found(to.size());
  for (const int end : graph.ends) {
    if (found[static_cast<size_t>(end)]) continue;
    found[static_cast<size_t>(end)] = true;
    const std::vector<bool> seen = reached_from(from, end);
    for (size_t r = 0; r < seen.size(); ++r) found[r] = found[r] || seen[r];
  }
  return found;
}

// Of ranks whose chains end nowhere: one belongs to a cycle that nothing leaves when all that it reaches reaches it.
void find_cycles(WaitGraph& graph, const std::vector<std::vector<int>>& to) {
  const std::vector<bool> ends = ending(graph, to);
  std::vector<std::vector<bool>> reach(to.size());
  for (size_t r = 0; r < to.size(); ++r)
    if (!ends[r]) reach[r] = reached_from(to, static_cast<int>(r));
  std::vector<bool> done(to.size());
  for (size_t r = 0; r < to.size(); ++r) {
    if (ends[r] || done[r] || !reach[r][r]) continue;
    std::vector<int> cycle;
    bool closed = true;
    for (size_t other = 0; other < to.size(); ++other)
      if (reach[r][other]) {
        cycle.push_back(static_cast<int>(other));
        closed = closed && reach[other][r];
      }
    if (!closed) continue;
    for (const int member : cycle) done[static_cast<size_t>(member)] = true;
    graph.cycles.push_back(std::move(cycle));
  }
}

}  // namespace

bool WaitGraph::blocked(int rank) const {
  return std::any_of(waits.begin(), waits.end(), [&](const Wait& w) { return w.from == rank && !w.in_background; });
}

std::vector<int> WaitGraph::waiting_for(int rank) const {
  std::vector<int> found, open{rank};
  const auto ends_here = [&](int r) { return std::find(ends.begin(), ends.end(), r) != ends.end(); };
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const Wait& w : waits) {
      if (w.to != at || w.in_background || w.from == rank || ends_here(w.from)) continue;
      if (std::find(found.begin(), found.end(), w.from) != found.end()) continue;
      found.push_back(w.from);
      open.push_back(w.from);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

const Wait* WaitGraph::lost_in(const std::vector<int>& cycle, const RankViews& views) const {
  const auto member = [&](int rank) { return std::find(cycle.begin(), cycle.end(), rank) != cycle.end(); };
  // Who lacks a message is behind the others. What all have passed but one is certain, a recv only likely.
  using Order = std::tuple<int, int64_t, int, FlightAction>;
  std::optional<std::pair<Order, const Wait*>> best;
  bool only = true;
  for (const Wait& w : waits) {
    if (w.in_background || !member(w.from) || !member(w.to)) continue;
    const bool lost = w.reason == WaitReason::lost;
    if (!lost && !(w.reason == WaitReason::message && w.kind == CommKind::recv)) continue;
    const auto& view = views[static_cast<size_t>(w.from)];
    const Order order{lost ? 0 : 1, view ? view->step : 0, view ? view->micro : 0, view ? view->action : FlightAction::none};
    if (!best || order < best->first) {
      best = {order, &w};
      only = true;
    } else if (order == best->first && best->second->to != w.to) {
      only = false;
    }
  }
  return best && only ? best->second : nullptr;
}

WaitGraph wait_graph(const RankViews& views) {
  WaitGraph graph = GraphMaker(views).make();
  for (int r = 0; r < static_cast<int>(views.size()); ++r) {
    const auto& v = views[static_cast<size_t>(r)];
    if (!v || v->gone() || v->ended || v->stopped() || !graph.blocked(r)) graph.ends.push_back(r);
  }
  const auto to = foreground(graph, views.size());
  std::vector<bool> awaited(views.size());
  for (const auto& targets : to)
    for (const int target : targets) awaited[static_cast<size_t>(target)] = true;
  for (const int end : graph.ends)
    if (awaited[static_cast<size_t>(end)]) graph.culprits.push_back(end);
  find_cycles(graph, to);
  return graph;
}

std::string operation_name(const Wait& w) {
  if (w.number == 0) return fmt::format("{} {} {} rank {}", w.group, name_of(w.kind), w.kind == CommKind::send ? "to" : "from", w.to);
  return fmt::format("{} {} {}", w.group, w.known_kind ? name_of(w.kind) : "operation", w.number);
}

}  // namespace hlat
