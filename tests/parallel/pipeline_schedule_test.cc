// The pipeline schedule, by enumeration: all stages together never deadlock and take the time they should; each stage alone
// runs everything once, in a fixed order, with no more memory than promised.
#include "parallel/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"

namespace hlat {
namespace {

constexpr int kForwardTime = 1, kBackwardTime = 2;

struct Case {
  int stages, micros, chunks;
  int last() const { return stages * chunks - 1; }  // the last virtual stage
  std::string name() const { return fmt::format("stages {} micros {} chunks {}", stages, micros, chunks); }
};

// Micro-batches in flight on a stage, counted once per chunk, at most. Reached exactly for one chunk or when stages divides micros.
// Chunks are fullest at different times: the sum of Schedule::slots can be larger.
int in_flight_bound(const Case& c, int stage) {
  const int distance = c.stages - stage - 1;  // to the last stage
  return c.chunks == 1 ? std::min(distance + 1, c.micros) : std::min(2 * distance + (c.chunks - 1) * c.stages + 1, c.micros * c.chunks);
}

void for_all_cases(const std::function<void(const Case&)>& test) {
  for (int stages = 1; stages <= 8; ++stages)
    for (int chunks = 1; chunks <= (stages > 1 ? 4 : 1); ++chunks)
      for (int micros = 1; micros <= 32; ++micros) {
        const Case c{.stages = stages, .micros = micros, .chunks = chunks};
        SCOPED_TRACE(c.name());
        test(c);
        if (testing::Test::HasFailure()) return;
      }
}

void for_all_stages(const std::function<void(const Case&, int stage, const Schedule&)>& test) {
  for_all_cases([&](const Case& c) {
    for (int stage = 0; stage < c.stages; ++stage) test(c, stage, make_schedule(stage, c.stages, c.micros, c.chunks));
  });
}

// A message is named by its kind and micro-batch and by the virtual stage that receives it.
struct Message {
  ActionKind kind;
  int micro, receiver;
  auto operator<=>(const Message&) const = default;
};

std::optional<Message> input_of(const Case& c, int stage, const Action& a) {
  const int v = a.chunk * c.stages + stage;
  const bool first = a.kind == ActionKind::forward ? v == 0 : v == c.last();
  return first ? std::nullopt : std::optional(Message{a.kind, a.micro, v});
}

std::optional<Message> output_of(const Case& c, int stage, const Action& a) {
  const int v = a.chunk * c.stages + stage;
  const bool last = a.kind == ActionKind::forward ? v == c.last() : v == 0;
  return last ? std::nullopt : std::optional(Message{a.kind, a.micro, a.kind == ActionKind::forward ? v + 1 : v - 1});
}

// All stages under the rules of schedule.h at their strictest: an action starts when its message has come and the buffer it will
// send from is free, and a message counts as received when the action that needs it has ended.
class Simulation {
 public:
  Simulation(const Case& c, int send_buffers)
      : case_(c), buffers_(static_cast<size_t>(send_buffers)), stages_(static_cast<size_t>(c.stages)) {
    for (std::vector<int64_t>* times : {&sent_, &received_}) times->assign(static_cast<size_t>(2 * c.micros * (c.last() + 1)), kNever);
    for (int s = 0; s < c.stages; ++s) stages_[static_cast<size_t>(s)].schedule = make_schedule(s, c.stages, c.micros, c.chunks);
  }

  // The time of the last action, or nothing after a deadlock.
  std::optional<int64_t> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < case_.stages; ++s)
        while (step(s)) moved = true;
    }
    int64_t end = 0;
    for (const Stage& stage : stages_) {
      if (stage.next != stage.schedule.actions.size()) return std::nullopt;
      end = std::max(end, stage.clock);
    }
    return end;
  }

 private:
  static constexpr int64_t kNever = -1;
  struct Stage {
    Schedule schedule;
    size_t next = 0;
    int64_t clock = 0;
    std::vector<Message> sends[2];  // per kind, in order
  };

  int64_t& at(std::vector<int64_t>& times, const Message& m) const {
    const int kind = m.kind == ActionKind::forward ? 0 : 1;
    return times[static_cast<size_t>((kind * case_.micros + m.micro) * (case_.last() + 1) + m.receiver)];
  }

  bool step(int s) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    if (stage.next == stage.schedule.actions.size()) return false;
    const Action& a = stage.schedule.actions[stage.next];
    const std::optional<Message> in = input_of(case_, s, a), out = output_of(case_, s, a);
    std::vector<Message>& sends = stage.sends[a.kind == ActionKind::forward ? 0 : 1];
    int64_t start = stage.clock;
    if (in) {
      if (at(sent_, *in) == kNever) return false;
      start = std::max(start, at(sent_, *in));
    }
    // A backward computes in the buffer it may send from, so it waits for that in any case.
    if ((out || a.kind == ActionKind::backward) && sends.size() >= buffers_) {
      const int64_t freed = at(received_, sends[sends.size() - buffers_]);
      if (freed == kNever) return false;
      start = std::max(start, freed);
    }
    stage.clock = start + (a.kind == ActionKind::forward ? kForwardTime : kBackwardTime);
    if (in) at(received_, *in) = stage.clock;
    if (out) {
      at(sent_, *out) = stage.clock;
      sends.push_back(*out);
    }
    ++stage.next;
    return true;
  }

  Case case_;
  size_t buffers_;
  std::vector<Stage> stages_;
  std::vector<int64_t> sent_, received_;  // per message: when, or kNever
};

// Times are in units of one chunk's forward: a whole stage's forward and backward take 3 * chunks.
TEST(PipelineSchedule, NeverDeadlocksAndHasTheKnownBubble) {
  for_all_cases([](const Case& c) {
    const std::optional<int64_t> end = Simulation(c, kSendBuffers).run();
    ASSERT_TRUE(end.has_value());
    const int64_t work = 3 * c.micros * c.chunks, plain = 3 * (c.micros + c.stages - 1) * c.chunks;
    if (c.chunks == 1) {
      EXPECT_EQ(*end, plain);
    } else if (c.micros % c.stages == 0) {
      EXPECT_EQ(*end, work + 3 * (c.stages - 1));  // the bubble of plain 1F1B / chunks
    } else if (c.micros == 1) {
      EXPECT_EQ(*end, plain);  // one micro-batch has nothing to overlap with
    } else {
      EXPECT_LT(*end, plain);
    }
  });
}

TEST(PipelineSchedule, NeverDeadlocksOnLargerMeshes) {
  for (const Case& c : {Case{16, 1, 8}, Case{16, 40, 5}, Case{16, 128, 4}, Case{32, 100, 2}, Case{64, 65, 2}, Case{64, 200, 1}}) {
    SCOPED_TRACE(c.name());
    EXPECT_TRUE(Simulation(c, kSendBuffers).run().has_value());
  }
}

// So kSendBuffers is the smallest that works, and the simulation does see deadlocks.
TEST(PipelineSchedule, OneSendBufferDeadlocksWhenInterleaved) {
  EXPECT_FALSE(Simulation({.stages = 2, .micros = 2, .chunks = 2}, 1).run().has_value());
  EXPECT_FALSE(Simulation({.stages = 8, .micros = 32, .chunks = 4}, 1).run().has_value());
  EXPECT_TRUE(Simulation({.stages = 8, .micros = 32, .chunks = 1}, 1).run().has_value());
}

// A transport without tags may rely on it.
TEST(PipelineSchedule, MessagesOfOneKindAreReceivedInTheOrderSent) {
  for_all_cases([](const Case& c) {
    for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
      std::vector<std::vector<Message>> sent(static_cast<size_t>(c.stages)), taken(static_cast<size_t>(c.stages));
      for (int s = 0; s < c.stages; ++s)
        for (const Action& a : make_schedule(s, c.stages, c.micros, c.chunks).actions) {
          if (a.kind != kind) continue;
          if (const auto in = input_of(c, s, a)) taken[static_cast<size_t>(s)].push_back(*in);
          if (const auto out = output_of(c, s, a)) sent[static_cast<size_t>(out->receiver % c.stages)].push_back(*out);
        }
      EXPECT_EQ(sent, taken);
    }
  });
}

TEST(PipelineSchedule, RunsEverythingOnceInAFixedOrder) {
  for_all_stages([](const Case& c, int, const Schedule& schedule) {
    ASSERT_EQ(schedule.actions.size(), static_cast<size_t>(2 * c.micros * c.chunks));
    // The next micro-batch of each chunk: forwards and backwards count up one by one, and no backward overtakes its forward.
    std::vector<int> forwards(static_cast<size_t>(c.chunks)), backwards(static_cast<size_t>(c.chunks));
    for (const Action& a : schedule.actions) {
      ASSERT_TRUE(a.chunk >= 0 && a.chunk < c.chunks);
      const auto chunk = static_cast<size_t>(a.chunk);
      ASSERT_EQ(a.micro, a.kind == ActionKind::forward ? forwards[chunk]++ : backwards[chunk]++);
      ASSERT_LE(backwards[chunk], forwards[chunk]);
    }
    for (int chunk = 0; chunk < c.chunks; ++chunk) {
      EXPECT_EQ(forwards[static_cast<size_t>(chunk)], c.micros);
      EXPECT_EQ(backwards[static_cast<size_t>(chunk)], c.micros);
    }
  });
}

TEST(PipelineSchedule, LastVirtualStageGoesStraightBack) {
  for_all_cases([](const Case& c) {
    const Schedule schedule = make_schedule(c.stages - 1, c.stages, c.micros, c.chunks);
    for (size_t i = 0; i < schedule.actions.size(); ++i) {
      Action a = schedule.actions[i];
      if (a.chunk != c.chunks - 1 || a.kind != ActionKind::forward) continue;
      ASSERT_LT(i + 1, schedule.actions.size());
      a.kind = ActionKind::backward;
      EXPECT_EQ(schedule.actions[i + 1], a);
    }
  });
}

TEST(PipelineSchedule, SlotsHoldOneMicroBatchAndAreAsFewAsPromised) {
  for_all_stages([](const Case& c, int stage, const Schedule& schedule) {
    std::set<std::pair<int, int>> live;  // chunk, slot
    std::vector<int> in_chunk(static_cast<size_t>(c.chunks)), most(static_cast<size_t>(c.chunks));
    std::vector<int> slot_of(static_cast<size_t>(c.chunks * c.micros));
    size_t in_flight = 0;
    for (const Action& a : schedule.actions) {
      const auto chunk = static_cast<size_t>(a.chunk);
      int& slot = slot_of[static_cast<size_t>(a.chunk * c.micros + a.micro)];
      if (a.kind == ActionKind::forward) {
        for (int s = 0; s < a.slot; ++s) EXPECT_TRUE(live.contains({a.chunk, s}));  // the smallest free one
        EXPECT_TRUE(live.insert({a.chunk, a.slot}).second);
        slot = a.slot;
        most[chunk] = std::max(most[chunk], ++in_chunk[chunk]);
      } else {
        EXPECT_EQ(a.slot, slot);
        EXPECT_EQ(live.erase({a.chunk, a.slot}), 1U);
        --in_chunk[chunk];
      }
      in_flight = std::max(in_flight, live.size());
    }
    EXPECT_TRUE(live.empty());
    EXPECT_EQ(schedule.slots, most);
    const auto bound = static_cast<size_t>(in_flight_bound(c, stage));
    EXPECT_LE(in_flight, bound);
    EXPECT_TRUE(in_flight == bound || (c.chunks > 1 && c.micros % c.stages != 0)) << in_flight << " of " << bound;
  });
}

TEST(PipelineSchedule, KnownOrder) {
  const auto text = [](const Schedule& schedule) {
    std::string result;
    for (const Action& a : schedule.actions) result += fmt::format("{}{}.{} ", a.kind == ActionKind::forward ? 'F' : 'B', a.micro, a.chunk);
    return result;
  };
  EXPECT_EQ(text(make_schedule(0, 1, 2, 1)), "F0.0 B0.0 F1.0 B1.0 ");
  EXPECT_EQ(text(make_schedule(1, 4, 4, 1)), "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0 ");
  EXPECT_EQ(text(make_schedule(0, 4, 2, 1)), "F0.0 F1.0 B0.0 B1.0 ");
  EXPECT_EQ(text(make_schedule(1, 2, 3, 2)), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 B1.0 F2.1 B2.1 B2.0 ");
  EXPECT_EQ(make_schedule(1, 2, 3, 2).slots, (std::vector<int>{3, 1}));
}

TEST(PipelineSchedule, RefusesBrokenContracts) {
  EXPECT_THROW(make_schedule(2, 2, 1, 1), CheckFailed);
  EXPECT_THROW(make_schedule(-1, 2, 1, 1), CheckFailed);
  EXPECT_THROW(make_schedule(0, 2, 0, 1), CheckFailed);
  EXPECT_THROW(make_schedule(0, 2, 1, 0), CheckFailed);
  EXPECT_THROW(make_schedule(0, 1, 1, 2), CheckFailed);
}

}  // namespace
}  // namespace hlat
