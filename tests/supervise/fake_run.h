// Ranks of a mesh that run one step of a small program each, without computing: collectives of the axes, messages between stages, sums over
// dp that a queue runs behind the computation. run() goes on until no rank can; views() are what a flight recorder would show then.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "supervise/wait_graph.h"

namespace hlat {

class FakeRun {
 public:
  enum class Do : uint8_t { compute, collective, send, recv, queue, await };
  struct Instruction {
    Do what = Do::compute;
    std::string group = {};
    CommKind kind = CommKind::all_reduce;
    int peer = -1;  // in the group
    int micro = -1;
    FlightAction action = FlightAction::update;
  };

  FakeRun(int tp, int pp, int dp) : tp_(tp), pp_(pp), dp_(dp), ranks_(static_cast<size_t>(tp * pp * dp)) {
    for (int r = 0; r < size(); ++r) {
      Rank& rank = ranks_[static_cast<size_t>(r)];
      rank.view.rank = r;
      rank.view.ranks = size();
      rank.view.pid = 1000 + r;
      rank.view.host = r < size() / 2 ? "node1" : "node2";
      rank.view.tp = tp;
      rank.view.pp = pp;
      rank.view.dp = dp;
      rank.view.process = 'S';
      rank.view.phase = FlightPhase::training;
      rank.view.phase_words = "training";
      rank.view.step = 7;
      rank.view.action = FlightAction::backward;
      const int stage = r / (tp * dp), replica = r / tp % dp;
      add_group(r, "world", 0, r, size());
      add_group(r, "tp", r - r % tp, r % tp, tp);
      add_group(r, "dp", r - replica * tp, replica, dp);
      add_group(r, "pp", r % (tp * dp), stage, pp);
      make_program(rank, stage);
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  size_t length(int rank) const { return ranks_[static_cast<size_t>(rank)].program.size(); }
  const Instruction& instruction(int rank, size_t at) const { return ranks_[static_cast<size_t>(rank)].program[at]; }
  RankView& view(int rank) { return ranks_[static_cast<size_t>(rank)].view; }
  GroupView& group(int rank, const std::string& name) {
    for (GroupView& g : view(rank).groups)
      if (g.name == name) return g;
    throw Error("no group " + name);
  }

  void hold(int rank, size_t before) { ranks_[static_cast<size_t>(rank)].held = before; }  // its computation stays before this instruction
  void drop(int rank, size_t at) { ranks_[static_cast<size_t>(rank)].dropped = at; }       // what it sends there, or waits for, is lost
  bool names_peers = true;                                                                 // calls that wait say for whom

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < size(); ++r) moved = move(r) || move_queue(r) || moved;
    }
    for (int r = 0; r < size(); ++r)
      for (GroupView& g : view(r).groups) g.peer = peer_of(r, g);
  }

  RankViews views() const {
    RankViews all;
    for (const Rank& rank : ranks_) all.emplace_back(rank.view);
    return all;
  }

 private:
  struct Rank {
    RankView view;
    std::vector<Instruction> program;
    size_t at = 0;
    std::optional<size_t> held, dropped;
    bool inside = false, queue_inside = false;
    std::deque<Instruction> queue;
    std::map<std::string, std::map<int, int>> sent, received;  // by group and peer
    std::map<std::string, int> message_peer;
  };

  void add_group(int rank, const std::string& name, int first, int index, int count) {
    if (count == 1) return;
    view(rank).groups.push_back(
        {.id = hash_name(name + std::to_string(first)), .name = name, .rank = index, .size = count, .entered = 40, .left = 40});
  }

  void make_program(Rank& rank, int stage) {
    int micro = 0;
    FlightAction action = FlightAction::forward;
    const auto add = [&](Do what, const char* group = "", CommKind kind = CommKind::all_reduce, int peer = -1) {
      for (const GroupView& g : rank.view.groups)
        if (*group == 0 || g.name == group) return rank.program.push_back({what, group, kind, peer, micro, action});
    };
    for (; micro < 2; ++micro) {
      action = FlightAction::forward;
      if (stage > 0) add(Do::recv, "pp", CommKind::recv, stage - 1);
      add(Do::compute);
      add(Do::collective, "tp");
      if (stage + 1 < pp_) add(Do::send, "pp", CommKind::send, stage + 1);
      action = FlightAction::backward;
      if (stage + 1 < pp_) add(Do::recv, "pp", CommKind::recv, stage + 1);
      add(Do::collective, "tp");
      if (micro == 1) add(Do::queue, "dp");
      add(Do::compute);
      if (stage > 0) add(Do::send, "pp", CommKind::send, stage - 1);
    }
    micro = -1;
    action = FlightAction::reduce;
    add(Do::queue, "dp");
    add(Do::await, "dp");
    add(Do::collective, "tp");
    add(Do::collective, "pp");
    for (const char* axis : {"tp", "dp", "pp"}) add(Do::collective, axis, CommKind::all_gather);
    add(Do::collective, "world", CommKind::barrier);
  }

  GroupView* member(uint64_t id, int index) {
    for (Rank& rank : ranks_)
      for (GroupView& g : rank.view.groups)
        if (g.id == id && g.rank == index) return &g;
    return nullptr;
  }
  int rank_of(uint64_t id, int index) {
    for (Rank& rank : ranks_)
      for (const GroupView& g : rank.view.groups)
        if (g.id == id && g.rank == index) return rank.view.rank;
    return -1;
  }
  bool all_entered(const GroupView& g) {
    for (int i = 0; i < g.size; ++i)
      if (member(g.id, i)->entered < g.entered) return false;
    return true;
  }

  static void open(GroupView& g, CommKind kind, bool queued) {
    g.open = true;
    g.queued = queued;
    g.kind = static_cast<uint8_t>(kind);
    g.peer = -1;
    const bool message = kind == CommKind::send || kind == CommKind::recv;
    if (!message) ++g.entered;
  }
  static void close(GroupView& g) {
    g.open = g.queued = false;
    g.left = g.entered;
  }

  // Returns whether anything happened.
  bool move(int r) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    if (rank.at == rank.program.size() || rank.held == rank.at) return false;
    const Instruction& now = rank.program[rank.at];
    const bool lost = rank.dropped == rank.at;
    rank.view.micro = now.micro;
    rank.view.action = now.action;
    const auto next = [&] {
      rank.inside = false;
      ++rank.at;
      return true;
    };
    if (now.what == Do::compute) return next();
    GroupView& g = group(r, now.group);
    switch (now.what) {
      case Do::queue: rank.queue.push_back(now); return next();
      case Do::await: g.awaited = !rank.queue.empty() || rank.queue_inside; return !g.awaited && next();
      case Do::send:
        if (!lost) ++rank.sent[now.group][now.peer];
        return next();
      case Do::recv: {
        if (!std::exchange(rank.inside, true)) open(g, now.kind, false), rank.message_peer[now.group] = now.peer;
        const int from = rank_of(g.id, now.peer);
        if (ranks_[static_cast<size_t>(from)].sent[now.group][g.rank] <= rank.received[now.group][now.peer]) return false;
        ++rank.received[now.group][now.peer];
        close(g);
        return next();
      }
      default: break;
    }
    const bool entered = rank.inside;
    if (!entered) open(g, now.kind, false), rank.inside = true;
    if (lost || !all_entered(g)) return !entered;
    close(g);
    return next();
  }

  bool move_queue(int r) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    if (rank.queue.empty() || rank.view.stopped()) return false;
    GroupView& g = group(r, rank.queue.front().group);
    const bool entered = std::exchange(rank.queue_inside, true);
    if (!entered) open(g, rank.queue.front().kind, true);
    if (!all_entered(g)) return !entered;
    close(g);
    rank.queue.pop_front();
    rank.queue_inside = false;
    return true;
  }

  // As a transport knows it: the peer of a message, or one whose part of the operation has not come.
  int peer_of(int r, const GroupView& g) {
    if (!g.open) return -1;
    const auto kind = static_cast<CommKind>(g.kind);
    if (kind == CommKind::send || kind == CommKind::recv) return ranks_[static_cast<size_t>(r)].message_peer[g.name];
    if (!names_peers) return -1;
    for (int i = 0; i < g.size; ++i)
      if (i != g.rank && member(g.id, i)->entered < g.entered) return i;
    return (g.rank + 1) % g.size;
  }

  int tp_, pp_, dp_;
  std::vector<Rank> ranks_;
};

}  // namespace hlat
