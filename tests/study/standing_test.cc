// How a run of a study stands, from its folder.
#include "study/standing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/print.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

// What comes after the last save may be left: hlat train makes it, and records the end.
TEST(StudyStanding, ARunIsFinishedWhenItHasRecordedThat) {
  const std::string start = R"("kind":"start","step":0,"reason":"started")", save = R"("kind":"save","step":4,"saved":4)";
  const auto end = [](int code) { return fmt::format(R"("kind":"end","step":4,"reason":"r","exit_code":{})", code); };
  const std::vector<std::pair<std::vector<std::string>, Standing>> rows = {{{start, save, end(0)}, Standing::finished},
                                                                           {{start, save, end(5)}, Standing::numbers},
                                                                           {{start, save}, Standing::cut_off},
                                                                           {{start, save, end(130)}, Standing::cut_off},
                                                                           {{start, save, end(4)}, Standing::cut_off},
                                                                           {{start, save, end(4), start, end(0)}, Standing::finished},
                                                                           {{start, save, end(0), start}, Standing::cut_off}};
  for (const auto& [lines, standing] : rows) {
    const TempDir dir;
    PlannedRun run{.run = {.name = "a", .row = "a"}, .config = {}};
    run.config.run.dir = dir.path("a"), run.config.train.steps = 4;
    std::string events, metrics;
    for (const std::string& e : lines) events += R"({"time":"2026-11-16T04:45:27.000Z",)" + e + "}\n";
    for (int step = 1; step <= 4; ++step) metrics += fmt::format("{{\"step\":{0},\"tokens\":{0},\"loss\":2}}\n", step);
    fs::create_directories(dir.path("a"));
    dir.write("a/events.jsonl", events), dir.write("a/metrics.jsonl", metrics), dir.write("a/config.yaml", to_yaml(run.config));
    EXPECT_EQ(name_of(standing_of(run).standing), name_of(standing)) << events;
  }
}

// A folder whose run has ended, and what is left of it where a new start was killed while it set things aside.
class StudySetAside : public testing::Test {
 protected:
  void make(int code, int64_t steps, bool config) const {
    const fs::path folder = dir_.path("a");
    fs::remove_all(folder);
    fs::create_directories(folder);
    dir_.write(
        "a/events.jsonl",
        fmt::format("{{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"start\",\"step\":0}}\n{{\"time\":\"2026-11-16T04:45:28.000Z\","
                    "\"kind\":\"end\",\"step\":{},\"reason\":\"r\",\"exit_code\":{}}}\n",
                    end_step, code));
    std::string metrics;
    for (int64_t step = 1; step <= steps; ++step) metrics += fmt::format("{{\"step\":{0},\"tokens\":{0},\"loss\":2}}\n", step);
    if (steps >= 0) dir_.write("a/metrics.jsonl", metrics);
    if (config) dir_.write("a/config.yaml", to_yaml(run().config));
  }
  PlannedRun run() const {
    PlannedRun run{.run = {.name = "a", .row = "a"}, .config = {}};
    run.config.run.dir = dir_.path("a"), run.config.train.steps = 4;
    return run;
  }
  std::string standing() const { return std::string(name_of(standing_of(run()).standing)); }
  void make_checkpoint() const {
    fs::create_directories(dir_.path("a/checkpoints/step_4"));
    dir_.write("a/checkpoints/step_4/index.json", "{}");
  }

  TempDir dir_;
  int64_t end_step = 4;
};

TEST_F(StudySetAside, AnEndWithoutItsRecordsIsNoResult) {
  for (const int code : {0, 5}) {
    const std::string whole = code == 0 ? "finished" : "numerical failure";
    make(code, 4, true);
    EXPECT_EQ(standing(), whole);
    make(code, -1, true);
    EXPECT_EQ(standing(), "cut off") << "metrics.jsonl is gone";
    make(code, 0, true);
    EXPECT_EQ(standing(), "cut off") << "that of the new run";
    make(code, 4, false);
    EXPECT_EQ(standing(), "cut off") << "config.yaml is gone";
    make(code, 0, false);
    EXPECT_EQ(standing(), "cut off");
    EXPECT_TRUE(standing_of(run()).starts_anew()) << "hlat train refuses a folder whose checkpoints are gone";
  }
  make(0, 4, true);
  EXPECT_FALSE(standing_of(run()).starts_anew());
}

TEST_F(StudySetAside, SoIsThatOfARunThatHadNotEnded) {
  const auto starts_anew = [&](const std::string& saves) {
    dir_.write("a/events.jsonl", R"({"time":"2026-11-16T04:45:27.000Z","kind":"start","step":0,"reason":"started"})"
                                 "\n" +
                                     saves);
    EXPECT_EQ(standing(), "cut off");
    return standing_of(run()).starts_anew();
  };
  const std::string save = R"({"time":"2026-11-16T04:45:28.000Z","kind":"save","step":2,"saved":2})"
                           "\n";
  make(0, 2, true);
  EXPECT_FALSE(starts_anew(save)) << "where its checkpoints are is for hlat train to ask";
  make(0, 0, true);
  EXPECT_TRUE(starts_anew(save));
  EXPECT_FALSE(starts_anew("")) << "it had not come to a save";
  make_checkpoint();
  EXPECT_FALSE(starts_anew(save));
}

// Checkpoints are set aside before anything else: where there are some, the records are missing for another reason, and hlat train would
// not train again.
TEST_F(StudySetAside, ARunWithItsCheckpointsStands) {
  make(0, 0, true), make_checkpoint();
  EXPECT_EQ(standing(), "finished");
  make(0, 4, false), make_checkpoint();
  const RunStanding found = standing_of(run());
  EXPECT_EQ(name_of(found.standing), "unreadable");
  EXPECT_EQ(found.reason, dir_.path("a") + " has no config.yaml; --fresh sets the run aside");
  EXPECT_TRUE(found.can_be_set_aside());
}

TEST_F(StudySetAside, NumbersThatGoWrongAtTheFirstStepLeaveNoMetrics) {
  end_step = 1;
  make(5, 0, true);
  EXPECT_EQ(standing(), "numerical failure");
}

TEST(StudyContradictions, WhatARunStartsFromIsOne) {
  Config recorded, planned;
  planned.checkpoint.every = 7, planned.checkpoint.dir = "elsewhere";
  EXPECT_TRUE(contradictions(recorded, planned).empty());
  planned.checkpoint.init_from = "weights";
  ASSERT_EQ(contradictions(recorded, planned).size(), 1u);
  EXPECT_EQ(contradictions(recorded, planned)[0].key, "checkpoint.init_from");
}

TEST(StudyContradictions, WhatTheStartOfARunFindsOutIsNone) {
  Config planned;
  planned.train.micro_batch = 0, planned.model.vocab = 0, planned.parallel.dp = 0, planned.train.steps = 0;  // auto
  Config recorded = planned;
  recorded.train.micro_batch = 4, recorded.model.vocab = 640, recorded.parallel.dp = 2, recorded.train.steps = 10;
  EXPECT_TRUE(contradictions(recorded, planned).empty());
  planned.train.micro_batch = 2;
  ASSERT_EQ(contradictions(recorded, planned).size(), 1u);
  EXPECT_EQ(contradictions(recorded, planned)[0].key, "train.micro_batch");
}

}  // namespace
}  // namespace hlat::test
