// The ring as its reader sees it: in this process, and from another one whose writer is stopped or was killed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "comm/comm.h"
#include "flight/flight_recorder.h"
#include "flight/rank_view.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

template <class Condition>
bool comes(const Condition& condition) {
  for (int tries = 0; tries < 6000; ++tries) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(FlightRing, AnAgentThatBeatsWhileOneLooksIsNotGone) {
  FlightRecorder flight({}, {});
  auto& ring = const_cast<FlightRing&>(flight.ring());
  EXPECT_FALSE(flight.agent_is_gone(60)) << "nobody watches";
  ring.agent_pid = getpid();
  ring.agent_beat_ns = FlightRecorder::now_ns() + 1000000000;  // after the clock was read
  EXPECT_FALSE(flight.agent_is_gone(60));
  ring.agent_beat_ns = FlightRecorder::now_ns() - uint64_t{61} * 1000000000;
  EXPECT_TRUE(flight.agent_is_gone(60));
}

TEST(FlightRing, AFolderThatIsNotThereYetIsNoBadInput) {
  const test::TempDir dir;
  EXPECT_THROW(FlightRecorder(dir.path("missing/rank_0.ring"), {}), FaultError);
}

TEST(FlightRing, TellsWhoWhereAndHow) {
  const test::TempDir dir;
  const auto file = flight_ring_file(dir.path(), 3);
  EXPECT_FALSE(RingReader::open(file));
  FlightRecorder flight(file, {.rank = 3, .ranks = 8, .host = "node7"});
  const auto reader = RingReader::open(file);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->view().phase_words, "starting");
  flight.mesh(2, 2, 2);
  flight.phase(FlightPhase::training, std::string(500, 'x'));
  flight.begin_step(41);
  flight.action(FlightAction::backward, 1, 0);
  flight.op(2);
  const RankView v = reader->view();
  EXPECT_EQ(v.rank, 3);
  EXPECT_EQ(v.ranks, 8);
  EXPECT_EQ(v.host, "node7");
  EXPECT_EQ(v.pid, getpid());
  EXPECT_EQ(v.phase, FlightPhase::training);
  EXPECT_EQ(v.phase_words, std::string(127, 'x'));  // cut to its room
  EXPECT_EQ(v.step, 41);
  EXPECT_EQ(v.action, FlightAction::backward);
  EXPECT_EQ(v.micro, 1);
  EXPECT_EQ(v.op, 2);
  EXPECT_FALSE(v.ended);
  EXPECT_FALSE(v.gone());
  flight.ended(4, "a peer is gone");
  flight.ended(0, "finished");
  EXPECT_TRUE(reader->view().ended);
  EXPECT_EQ(reader->view().exit_code, 4);
  EXPECT_EQ(reader->view().reason, "a peer is gone");
}

TEST(FlightRing, ARingIsMadeOnceAndAnotherVersionIsNotRead) {
  const test::TempDir dir;
  const std::filesystem::path file = dir.path("ring");
  FlightRecorder flight(file, {});
  EXPECT_THROW(FlightRecorder(file, {}), Error);
  std::filesystem::resize_file(file, sizeof(FlightRing) / 2);
  EXPECT_FALSE(RingReader::open(file));
}

TEST(FlightRing, EventsWrapAround) {
  const test::TempDir dir;
  FlightRecorder flight(dir.path("ring"), {});
  const auto reader = RingReader::open(dir.path("ring"));
  ASSERT_TRUE(reader);
  for (int64_t step = 1; step <= 3; ++step) flight.begin_step(step);
  ASSERT_EQ(reader->events().size(), 4u);  // with the phase at the start
  EXPECT_EQ(reader->events().back().number, 3u);
  for (int64_t step = 4; step <= 2000; ++step) flight.begin_step(step);
  const auto events = reader->events();
  ASSERT_EQ(events.size(), static_cast<size_t>(kFlightEvents));
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].number, 2000 - kFlightEvents + 1 + i);
}

TEST(FlightRing, TimesOfStepsAreTheLatestAfterThoseThatAreKnown) {
  const test::TempDir dir;
  FlightRecorder flight(dir.path("ring"), {});
  const auto reader = RingReader::open(dir.path("ring"));
  ASSERT_TRUE(reader);
  for (int64_t step = 11; step <= 110; ++step) flight.end_step(step, static_cast<double>(step), 0.5 * static_cast<double>(step));
  const RankView all = reader->view();
  EXPECT_EQ(all.steps_done, 100);
  ASSERT_EQ(all.steps.size(), static_cast<size_t>(kFlightSteps - 1));  // one may be under way
  EXPECT_EQ(all.steps.back().step, 110);
  EXPECT_EQ(all.steps.back().compute_s, 55);
  const RankView later = reader->view(98);
  ASSERT_EQ(later.steps.size(), 2u);
  EXPECT_EQ(later.steps.front().step, 109);
  EXPECT_TRUE(reader->view(100).steps.empty());
}

TEST(FlightRing, GroupsCountCollectivesAndNamePeersOfMessages) {
  const test::TempDir dir;
  FlightRecorder flight(dir.path("ring"), {});
  const auto reader = RingReader::open(dir.path("ring"));
  ASSERT_TRUE(reader);
  const int tp = flight.add_group("tp", 77, 1, 4, false);
  const auto group = [&] { return reader->view().groups.at(0); };
  EXPECT_EQ(group().name, "tp");
  EXPECT_EQ(group().id, 77u);
  for (int i = 0; i < 3; ++i) {
    flight.enter(tp, static_cast<uint8_t>(CommKind::all_reduce), -1);
    flight.leave(tp);
  }
  flight.enter(tp, static_cast<uint8_t>(CommKind::all_gather), -1);
  flight.waits_for(tp, 2);
  EXPECT_TRUE(group().open);
  EXPECT_EQ(group().entered, 4u);
  EXPECT_EQ(group().left, 3u);
  EXPECT_EQ(group().peer, 2);
  EXPECT_EQ(group().kind, static_cast<uint8_t>(CommKind::all_gather));
  flight.leave(tp);
  EXPECT_FALSE(group().open);
  EXPECT_EQ(group().left, 4u);
  flight.enter(tp, static_cast<uint8_t>(CommKind::recv), 3);
  EXPECT_EQ(group().entered, 4u);  // messages are not counted
  EXPECT_EQ(group().peer, 3);
  flight.queued(tp, true);
  flight.awaited(tp, true);
  EXPECT_TRUE(group().queued && group().awaited);
  for (int i = 1; i < kFlightGroups; ++i) EXPECT_EQ(flight.add_group("more", static_cast<uint64_t>(100 + i), 0, 2, false), i);
  const int none = flight.add_group("too many", 999, 0, 2, false);
  EXPECT_EQ(none, -1);
  flight.enter(none, 0, -1);
  flight.leave(none);
}

TEST(FlightRing, AViewSurvivesJson) {
  const test::TempDir dir;
  FlightRecorder flight(dir.path("ring"), {.rank = 1, .ranks = 2, .host = "node"});
  flight.add_group("dp", ~uint64_t{0}, 1, 2, true);
  flight.end_step(5, 0.25, 0.125);
  flight.phase(FlightPhase::evaluation, "evaluating tasks");
  const auto reader = RingReader::open(dir.path("ring"));
  ASSERT_TRUE(reader);
  const nlohmann::ordered_json json = to_json(reader->view());
  const RankView back = rank_view(nlohmann::ordered_json::parse(json.dump()));
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.groups.at(0).id, ~uint64_t{0});
  nlohmann::ordered_json less = json;
  less.erase("progress");
  EXPECT_THROW(rank_view(less), Error);
}

TEST(FlightRing, IsReadWhenItsWriterIsStoppedAndWhenItWasKilled) {
  const test::TempDir dir;
  const auto file = flight_ring_file(dir.path(), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    FlightRecorder flight(file, {.rank = 0, .ranks = 2, .host = "here"});
    const int dp = flight.add_group("dp", 5, 0, 2, false);
    flight.begin_step(9);
    flight.enter(dp, static_cast<uint8_t>(CommKind::all_reduce), -1);
    for (;;) pause();
  }
  std::optional<RingReader> reader;
  EXPECT_TRUE(comes(
      [&] { return (reader = RingReader::open(file)).has_value() && !reader->view().groups.empty() && reader->view().groups[0].open; }));
  kill(child, SIGSTOP);
  EXPECT_TRUE(comes([&] { return reader->view().stopped(); }));
  const RankView stopped = reader->view();
  EXPECT_EQ(stopped.pid, child);
  EXPECT_EQ(stopped.step, 9);
  EXPECT_TRUE(stopped.groups.at(0).open);
  EXPECT_EQ(stopped.groups.at(0).entered, 1u);
  EXPECT_TRUE(comes([&] { return reader->view().silent_s > 0.05; }));
  EXPECT_EQ(reader->view().progress, stopped.progress);
  kill(child, SIGKILL);
  EXPECT_TRUE(comes([&] { return reader->view().gone(); }));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(reader->view().gone());
  EXPECT_EQ(reader->view().groups.at(0).entered, 1u);
  EXPECT_EQ(reader->events().back().kind, FlightKind::enter);
  EXPECT_TRUE(RingReader::open(file));
}

TEST(FlightRing, ARankKnowsWhenItsAgentIsGone) {
  const test::TempDir dir;
  FlightRecorder flight(dir.path("ring"), {});
  const auto reader = RingReader::open(dir.path("ring"));
  ASSERT_TRUE(reader);
  EXPECT_FALSE(flight.agent_is_gone(0));  // none ever was there
  reader->beat(getpid());
  EXPECT_FALSE(flight.agent_is_gone(600));
  EXPECT_TRUE(comes([&] { return flight.agent_is_gone(1e-4); }));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  reader->beat(child);
  EXPECT_TRUE(flight.agent_is_gone(600));
}

}  // namespace
}  // namespace hlat
