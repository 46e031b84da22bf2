#include "supervise/evidence.h"

#include <gtest/gtest.h>

#include "flight/flight_recorder.h"
#include "supervise/fake_run.h"
#include "supervise/words.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

bool tells(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Evidence, RanksAreCountedInWords) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1}), "ranks 0, 1");
  EXPECT_EQ(ranks_text({0, 1, 2, 5, 8, 9, 10, 11}), "ranks 0 to 2, 5, 8 to 11");
}

TEST(Evidence, HasALineForEachRankWithItsWait) {
  FakeRun run(1, 1, 3);
  run.hold(1, 0);
  run.view(1).process = 'T';
  run.view(1).silent_s = 9.64;
  run.run();
  RankViews views = run.views();
  views[2].reset();
  const std::string text = evidence_text(views);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_TRUE(tells(text, "rank 0: node1 pid 1000, sleeping, in step 7")) << text;
  EXPECT_TRUE(tells(text, "in dp all_reduce 41 for 0.0 s, waits for ranks 1, 2")) << text;
  EXPECT_TRUE(tells(text, "rank 1: node2 pid 1001, stopped, in step 7")) << text;
  EXPECT_TRUE(tells(text, "last progress 9.6 s ago")) << text;
  EXPECT_TRUE(tells(text, "rank 2: nothing is known of it")) << text;
}

TEST(Evidence, AStartIsToldWithThePhaseAndAnEndWithItsReason) {
  FakeRun run(1, 1, 2);
  run.view(0).phase = FlightPhase::start;
  run.view(0).phase_words = "loading the checkpoint";
  run.view(1).ended = true;
  run.view(1).exit_code = 5;
  run.view(1).reason = "the loss is nan";
  const std::string text = evidence_text(run.views());
  EXPECT_TRUE(tells(text, "in the start-up, loading the checkpoint")) << text;
  EXPECT_TRUE(tells(text, "ended with code 5: the loss is nan")) << text;
}

TEST(Evidence, EventsAreToldInWords) {
  const test::TempDir dir;
  FlightRecorder flight(dir.path("ring"), {});
  const int dp = flight.add_group("dp", 3, 0, 2, false);
  flight.begin_step(12);
  flight.action(FlightAction::backward, 1, 0);
  flight.op(2);
  flight.enter(dp, static_cast<uint8_t>(CommKind::all_reduce), -1);
  flight.leave(dp);
  flight.enter(dp, static_cast<uint8_t>(CommKind::recv), 1);
  const auto ring = RingReader::open(dir.path("ring"));
  ASSERT_TRUE(ring);
  const std::string text = events_text(*ring);
  for (const char* part : {"phase: start-up", "step 12", "backward, micro-batch 1", "op matmul", "enters dp all_reduce 1",
                           "leaves dp all_reduce 1", "0.000000 s  enters dp recv from 1"})
    EXPECT_TRUE(tells(text, part)) << part << " in\n" << text;
  EXPECT_EQ(events_text(*ring, 1).find("step"), std::string::npos);
}

}  // namespace
}  // namespace hlat
