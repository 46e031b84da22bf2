// What one rank does in a step, in order: a dry run writes it down, and the planner's simulator plays it. Ops and calls that are alike are
// one line of a table, so a step of millions of ops is a list of small numbers. Kinds and types are those of ops/cost.h, comm/comm.h
// and tensor/dtype.h, as numbers: this part stands below them.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace hlat {

inline size_t trace_hash(std::array<int64_t, 3> parts) {
  uint64_t h = 0;
  for (const int64_t p : parts) h = (h ^ static_cast<uint64_t>(p)) * 0x9e3779b97f4a7c15 ^ h >> 29;
  return h ^ h >> 32;
}

struct TracedOp {
  uint8_t kind = 0;             // OpKind
  uint8_t dtype = 0, out = 0;   // DType of a product's or an attention's inputs, and of a product's output; else 0
  uint8_t form = 0;             // of a product: 1 a transposed, 2 b transposed, 4 added to what is there, 8 fast sums of FP8
  std::array<int64_t, 3> dims;  // of a product: m, n, k; of an attention: heads x sequences, tokens, head size; else 0
  double flops = 0, bytes = 0;
  auto operator<=>(const TracedOp&) const = default;
  size_t hash() const { return trace_hash({kind, dims[0] + 31 * dims[1] + 1009 * dims[2], std::bit_cast<int64_t>(bytes)}); }
};

struct TracedCall {
  uint8_t group = 0;  // Axis
  uint8_t kind = 0;   // CommKind
  int peer = -1;      // of a message, in the group; of a broadcast the root
  int tag = -1;       // of a message
  double bytes = 0;   // of the whole tensor
  auto operator<=>(const TracedCall&) const = default;
  size_t hash() const { return trace_hash({group * 16 + kind, peer * 4096 + tag, std::bit_cast<int64_t>(bytes)}); }
};

enum class TraceKind : uint8_t {
  op,         // an op of the device
  call,       // a collective that later ops wait for
  queued,     // a collective that later ops do not wait for; those of one group run in order
  join,       // later ops wait for all that was queued of the group `index`
  send,       // a message is handed over
  recv,       // later ops wait for a message
  wait_sent,  // until the message of the `index`-th send of this trace has left
  action,     // what follows belongs to this action
};

struct TraceEntry {
  TraceKind kind = TraceKind::op;
  uint32_t index = 0;  // of the table that the kind names
};

struct TracedAction {
  uint8_t kind = 0;  // FlightAction
  int micro = 0, chunk = 0;
  auto operator<=>(const TracedAction&) const = default;
  size_t hash() const { return trace_hash({kind, micro, chunk}); }
};

class StepTrace {
 public:
  void op(const TracedOp& o) { add(TraceKind::op, ops_.of(o)); }
  void call(const TracedCall& c) { add(queueing_ ? TraceKind::queued : TraceKind::call, calls_.of(c)); }
  void begin_queue() { queueing_ = true; }
  void end_queue() { queueing_ = false; }
  void join(uint8_t group) { add(TraceKind::join, group); }
  uint32_t send(const TracedCall& c) {  // returns its number, from 1
    add(TraceKind::send, calls_.of(c));
    return ++sends_;
  }
  void recv(const TracedCall& c) { add(TraceKind::recv, calls_.of(c)); }
  void wait_sent(uint32_t number) { add(TraceKind::wait_sent, number); }
  void action(const TracedAction& a) { add(TraceKind::action, actions_.of(a)); }

  const std::vector<TraceEntry>& entries() const { return entries_; }
  const std::vector<TracedOp>& ops() const { return ops_.lines; }
  const std::vector<TracedCall>& calls() const { return calls_.lines; }
  const std::vector<TracedAction>& actions() const { return actions_.lines; }

 private:
  template <class Line>
  struct Table {
    struct Hash {
      size_t operator()(const Line& line) const { return line.hash(); }
    };
    std::vector<Line> lines;
    std::unordered_map<Line, uint32_t, Hash> places;
    uint32_t of(const Line& line) {
      const auto [it, fresh] = places.try_emplace(line, static_cast<uint32_t>(lines.size()));
      if (fresh) lines.push_back(line);
      return it->second;
    }
  };
  void add(TraceKind kind, uint32_t index) { entries_.push_back({kind, index}); }

  std::vector<TraceEntry> entries_;
  Table<TracedOp> ops_;
  Table<TracedCall> calls_;
  Table<TracedAction> actions_;
  uint32_t sends_ = 0;
  bool queueing_ = false;
};

}  // namespace hlat
