#include "plan/simulate.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "comm/comm.h"
#include "plan/trace_pieces.h"

namespace hlat {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Message {
  double arrives = 0;
  double left = 0;  // the sender's buffer is free
};

enum class State : uint8_t { next, works, waits_message, waits_sent, waits_queue, waits_stages, done };

struct Stage {
  const StepTrace* trace = nullptr;
  std::vector<TracePiece> pieces;
  std::vector<OpSums> sums;
  size_t at = 0;
  State state = State::next;
  double remaining = 0;        // of what it works on, at full speed
  double began = 0;            // the piece or the wait
  double full = 0;             // seconds of the piece at full speed
  std::deque<uint32_t> queue;  // calls, the first is under way
  double queue_remaining = 0, queue_began = 0;
  std::vector<Message> sent;
  std::array<int, kAxes> meetings{};  // collectives over stages that it has come to
  StageTime time;
};

class Simulation {
 public:
  Simulation(const std::vector<const StepTrace*>& traces, const MeshShape& shape, const StepClock& clock, bool spans)
      : shape_(shape), clock_(clock), keeps_spans_(spans), stages_(traces.size()) {
    HLAT_CHECK(static_cast<int>(traces.size()) == shape.pp, "{} traces for {} stages", traces.size(), shape.pp);
    for (size_t s = 0; s < traces.size(); ++s) {
      stages_[s].trace = traces[s];
      stages_[s].pieces = pieces_of(*traces[s], clock, stages_[s].sums);
    }
  }

  StepTime run() {
    for (;;) {
      while (start_all()) {
      }
      const double step = next_event();
      if (step == kNever) break;
      advance(step);
    }
    StepTime out;
    for (size_t s = 0; s < stages_.size(); ++s) {
      HLAT_CHECK(stages_[s].state == State::done, "stage {} waits for ever at piece {} of {}", s, stages_[s].at, stages_[s].pieces.size());
      out.seconds = std::max(out.seconds, stages_[s].time.end);
      out.stages.push_back(stages_[s].time);
    }
    for (StageTime& t : out.stages) t.bubble += out.seconds - t.end;  // idle until the last stage has ended
    out.overhead = clock_.step_overhead();
    out.seconds += out.overhead;
    out.spans = std::move(spans_);
    return out;
  }

 private:
  bool start_all() {
    bool any = false;
    for (size_t s = 0; s < stages_.size(); ++s) any = start(s) || any;
    return any;
  }

  const TracedCall& call_of(const Stage& st, uint32_t index) const { return st.trace->calls()[index]; }

  // Ends the wait of a stage where it is over, or begins its next piece. True when something changed.
  bool start(size_t s) {
    Stage& st = stages_[s];
    switch (st.state) {
      case State::next: begin_piece(s); return true;
      case State::waits_message: return try_receive(s);
      case State::waits_sent:
        if (now_ < st.sent[st.pieces[st.at].index - 1].left) return false;
        return end_wait(s, Axis::pp, false);
      case State::waits_queue:
        if (!st.queue.empty()) return false;
        return end_wait(s, static_cast<Axis>(st.pieces[st.at].index), false);
      case State::waits_stages: return try_meet(s);
      case State::works:
      case State::done: return false;
    }
    return false;
  }

  void begin_piece(size_t s) {
    Stage& st = stages_[s];
    if (st.at == st.pieces.size()) {
      st.state = State::done;
      st.time.end = now_;
      return;
    }
    const TracePiece& p = st.pieces[st.at];
    st.began = now_;
    switch (p.kind) {
      case TraceKind::op: work(st, p.seconds); break;
      case TraceKind::call: {
        const TracedCall& c = call_of(st, p.index);
        if (meets_stages(c)) {
          st.state = State::waits_stages;
          ++st.meetings[c.group];
        } else {
          work(st, clock_.call(c));
        }
        break;
      }
      case TraceKind::queued:
        st.queue.push_back(p.index);
        if (st.queue.size() == 1) begin_queued(st);
        pass(st);
        break;
      case TraceKind::join: st.state = State::waits_queue; break;
      case TraceKind::send: send(s, call_of(st, p.index)); break;
      case TraceKind::recv: st.state = State::waits_message; break;
      case TraceKind::wait_sent: st.state = State::waits_sent; break;
      case TraceKind::action: pass(st); break;
    }
  }

  static void work(Stage& st, double seconds) {
    st.state = State::works;
    st.remaining = st.full = seconds;
  }
  static void pass(Stage& st) {
    ++st.at;
    st.state = State::next;
  }

  void begin_queued(Stage& st) {
    st.queue_remaining = clock_.call(call_of(st, st.queue.front()));
    st.queue_began = now_;
  }

  static bool meets_stages(const TracedCall& c) {
    return static_cast<Axis>(c.group) == Axis::pp || static_cast<Axis>(c.group) == Axis::ends;
  }
  bool takes_part(size_t s, Axis axis) const { return axis == Axis::pp || s == 0 || s + 1 == stages_.size(); }

  // A collective over stages: waits until every one has come to its own call of the same number, then takes its time on each.
  bool try_meet(size_t s) {
    Stage& st = stages_[s];
    const TracedCall& c = call_of(st, st.pieces[st.at].index);
    for (size_t other = 0; other < stages_.size(); ++other)
      if (takes_part(other, static_cast<Axis>(c.group)) && stages_[other].meetings[c.group] < st.meetings[c.group]) return false;
    idle(s, static_cast<Axis>(c.group), true);
    st.began = now_;
    work(st, clock_.call(c));
    return true;
  }

  struct Link {
    size_t from = 0, to = 0;
    int tag = 0;
    auto operator<=>(const Link&) const = default;
  };

  void send(size_t s, const TracedCall& c) {
    Stage& st = stages_[s];
    const auto to = static_cast<size_t>(c.peer);
    const StepClock::Transfer t = clock_.message(c);
    double& free = link_free_[{s, to}];
    free = std::max(free, now_) + t.seconds;
    const Message m{.arrives = free + t.latency, .left = free};
    st.sent.push_back(m);
    messages_[{s, to, c.tag}].push_back(m);
    pass(st);
  }

  // The part of the wait after the message was sent is the link's, what lies before is idle time.
  bool try_receive(size_t s) {
    Stage& st = stages_[s];
    const TracedCall& c = call_of(st, st.pieces[st.at].index);
    std::deque<Message>& inbox = messages_[{static_cast<size_t>(c.peer), s, c.tag}];
    if (inbox.empty() || inbox.front().arrives > now_) return false;
    const StepClock::Transfer t = clock_.message(c);
    const double sent_at = inbox.front().arrives - t.latency - t.seconds;
    inbox.pop_front();
    const double waited = now_ - st.began, link = std::clamp(now_ - std::max(sent_at, st.began), 0.0, waited);
    st.time.exposed[static_cast<size_t>(Axis::pp)] += link;
    st.time.bubble += waited - link;
    note(s, SimSpan::What::wait, c.group);
    pass(st);
    return true;
  }

  void idle(size_t s, Axis axis, bool bubble) {
    Stage& st = stages_[s];
    (bubble ? st.time.bubble : st.time.exposed[static_cast<size_t>(axis)]) += now_ - st.began;
    note(s, SimSpan::What::wait, static_cast<uint8_t>(axis));
  }

  bool end_wait(size_t s, Axis axis, bool bubble) {
    idle(s, axis, bubble);
    pass(stages_[s]);
    return true;
  }

  struct Speeds {
    double device = 1, queue = 1;
  };
  // Of a stage whose lanes do, or do not, work. All ranks of a stage are alike, so each counts tp x dp times.
  Speeds speeds(const Stage& st) const {
    if (clock_.cores() > 0) return {share_, share_};
    return {st.queue.empty() ? 1 : 1 - clock_.overlap_cost(), 1};
  }

  void share_cores() {
    if (clock_.cores() == 0) return;
    double wanted = 0;
    for (const Stage& st : stages_) wanted += (st.state == State::works ? clock_.threads() : 0) + (st.queue.empty() ? 0 : 1);
    wanted *= shape_.tp * shape_.dp;
    share_ = wanted > clock_.cores() ? clock_.cores() / wanted : 1;
  }

  double next_event() {
    share_cores();
    double first = kNever;
    for (const Stage& st : stages_) {
      const Speeds v = speeds(st);
      if (st.state == State::works) first = std::min(first, st.remaining / v.device);
      if (!st.queue.empty()) first = std::min(first, st.queue_remaining / v.queue);
      if (st.state == State::waits_sent) first = std::min(first, st.sent[st.pieces[st.at].index - 1].left - now_);
      if (st.state != State::waits_message) continue;
      const TracedCall& c = call_of(st, st.pieces[st.at].index);
      const auto it = messages_.find({static_cast<size_t>(c.peer), static_cast<size_t>(&st - stages_.data()), c.tag});
      if (it != messages_.end() && !it->second.empty()) first = std::min(first, it->second.front().arrives - now_);
    }
    return first == kNever ? kNever : std::max(first, 0.0);
  }

  void advance(double step) {
    now_ += step;
    const double tiny = 1e-15 + now_ * 1e-14;  // what is left by rounding is nothing
    for (size_t s = 0; s < stages_.size(); ++s) {
      Stage& st = stages_[s];
      const Speeds v = speeds(st);
      const bool queued = !st.queue.empty();
      if (st.state == State::works && (st.remaining -= step * v.device) <= tiny) end_work(s);
      if (queued && (st.queue_remaining -= step * v.queue) <= tiny) end_queued(s);
    }
    settle_arrivals(tiny);
  }

  // Arrivals that rounding left a hair in the future have come.
  void settle_arrivals(double tiny) {
    for (Stage& st : stages_) {
      if (st.state == State::waits_sent) {
        double& left = st.sent[st.pieces[st.at].index - 1].left;
        if (left > now_ && left - now_ <= tiny) left = now_;
      }
      if (st.state != State::waits_message) continue;
      const TracedCall& c = call_of(st, st.pieces[st.at].index);
      const auto it = messages_.find({static_cast<size_t>(c.peer), static_cast<size_t>(&st - stages_.data()), c.tag});
      if (it == messages_.end() || it->second.empty()) continue;
      double& arrives = it->second.front().arrives;
      if (arrives > now_ && arrives - now_ <= tiny) arrives = now_;
    }
  }

  void end_work(size_t s) {
    Stage& st = stages_[s];
    const TracePiece& p = st.pieces[st.at];
    st.time.slowed += std::max(0.0, now_ - st.began - st.full);
    if (p.kind == TraceKind::op) {
      for (const auto& [kind, seconds] : st.sums[p.sums]) st.time.compute[kind] += seconds;
      note(s, SimSpan::What::compute, 0);
    } else {
      const TracedCall& c = call_of(st, p.index);
      st.time.exposed[c.group] += st.full;
      note(s, SimSpan::What::call, c.group, c.kind);
    }
    pass(st);
  }

  void end_queued(size_t s) {
    Stage& st = stages_[s];
    const TracedCall& c = call_of(st, st.queue.front());
    st.time.queued += now_ - st.queue_began;
    if (keeps_spans_)
      spans_.push_back({.stage = static_cast<int>(s),
                        .queue = true,
                        .begin = st.queue_began,
                        .end = now_,
                        .what = SimSpan::What::call,
                        .axis = c.group,
                        .kind = c.kind,
                        .action = {}});
    st.queue.pop_front();
    if (!st.queue.empty()) begin_queued(st);
  }

  void note(size_t s, SimSpan::What what, uint8_t axis, uint8_t kind = 0) {
    const Stage& st = stages_[s];
    if (!keeps_spans_ || now_ <= st.began) return;
    spans_.push_back({.stage = static_cast<int>(s),
                      .begin = st.began,
                      .end = now_,
                      .what = what,
                      .axis = axis,
                      .kind = kind,
                      .action = st.pieces[st.at].action});
  }

  const MeshShape shape_;
  const StepClock& clock_;
  const bool keeps_spans_;
  std::vector<Stage> stages_;
  double now_ = 0;
  double share_ = 1;  // of a core that each lane has
  std::map<Link, std::deque<Message>> messages_;
  std::map<std::pair<size_t, size_t>, double> link_free_;
  std::vector<SimSpan> spans_;
};

}  // namespace

double StageTime::computed() const { return std::accumulate(compute.begin(), compute.end(), 0.0); }

double StageTime::optimizer() const {
  double sum = 0;
  for (const OpKind k : {OpKind::sum, OpKind::sum_squares, OpKind::clip_scale, OpKind::adamw}) sum += compute[static_cast<size_t>(k)];
  return sum;
}

const StageTime& StepTime::busiest() const {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const StageTime& a, const StageTime& b) { return a.computed() < b.computed(); });
}

StepTime simulate(const std::vector<const StepTrace*>& stages, const MeshShape& shape, const StepClock& clock, bool spans) {
  return Simulation(stages, shape, clock, spans).run();
}

}  // namespace hlat
