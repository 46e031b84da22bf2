// Of too many notes and events a report has the latest and the largest, and says how many there are.
#include "report/kept_notes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "report/report_data.h"

namespace hlat {
namespace {

using NotesJson = nlohmann::ordered_json;

ReportRun noted_run() {
  return {.name = "a",
          .overview = {},
          .steps = {},
          .evaluations = {},
          .clock = {},
          .notes = {},
          .config = {},
          .mixture = {},
          .plan = {},
          .ledger = {}};
}

NotesJson data_of_run(const ReportRun& run) { return report_data({run}, {})["runs"][0]; }

std::vector<int64_t> steps_in(const NotesJson& list) {
  std::vector<int64_t> steps;
  for (const NotesJson& note : list) steps.push_back(note["step"]);
  return steps;
}

std::vector<int64_t> steps_from_to(int64_t first, int64_t last) {
  std::vector<int64_t> steps;
  for (int64_t s = first; s <= last; ++s) steps.push_back(s);
  return steps;
}

TEST(KeptNotes, OfLossesAreTheLatestAndThoseFurthestAboveTheMedian) {
  ReportRun run = noted_run();
  const std::set<int64_t> large = {400, 401};
  for (int64_t step = 1; step <= 1234; ++step) {
    LossNote n{.step = step, .kind = "spike", .cause = "spike", .action = "continue", .reason = "", .loss = 0, .median = 8.5};
    n.loss = 9 + 1e-3 * static_cast<double>(1234 - step);  // ever smaller
    if (large.contains(step)) n.median = 4;
    if (step == 5) n.kind = n.cause = "non_finite", n.grad_norm = NAN;  // its loss alone would not tell
    if (step == 6) n.kind = "skip", n.loss = NAN;
    if (step == 7) n.kind = "skip", n.cause = "asked", n.loss = n.median = NAN;
    run.notes.losses.push_back(n);
  }
  const NotesJson data = data_of_run(run);
  EXPECT_EQ(data["all"]["losses"], 1234);
  // The latest 100, and 100 of those before: what is not finite, what is large, and the first, without the one that was not computed.
  std::vector<int64_t> expected = steps_from_to(1, 6);
  for (const int64_t s : steps_from_to(8, 99)) expected.push_back(s);
  for (const int64_t s : large) expected.push_back(s);
  for (const int64_t s : steps_from_to(1135, 1234)) expected.push_back(s);
  EXPECT_EQ(steps_in(data["losses"]), expected);
  EXPECT_EQ(data["losses"].size(), 200u);
  EXPECT_EQ(data["row"]["spikes"], 1233) << "the table of runs counts all but the batch that was asked for";
}

TEST(KeptNotes, OfAlarmsAreTheLatestAndThoseFurthestFromTheirLimit) {
  ReportRun run = noted_run();
  for (int64_t step = 1; step <= 300; ++step) {
    AlarmNote a{.step = step, .rule = "growth", .evidence = "", .advice = "", .value = 11, .limit = 10};
    a.value += 0.01 * static_cast<double>(300 - step);  // ever smaller
    if (step == 150) a.value = 1000;
    if (step == 160) a.rule = "lost_updates", a.value = 0.001, a.limit = 1;  // too small
    if (step == 170) a.rule = "leak", a.value = 1e-9, a.limit = 0;
    if (step == 180) a.value = NAN;
    run.notes.alarms.push_back(a);
  }
  const NotesJson data = data_of_run(run);
  EXPECT_EQ(data["all"]["alarms"], 300);
  std::vector<int64_t> expected = steps_from_to(1, 96);
  for (const int64_t s : {150, 160, 170, 180}) expected.push_back(s);
  for (const int64_t s : steps_from_to(201, 300)) expected.push_back(s);
  EXPECT_EQ(steps_in(data["alarms"]), expected);
}

RunOverview events_of_run(const std::vector<std::pair<std::string, int>>& kinds) {
  RunOverview run;
  run.run.begin = 100;
  run.events.push_back({.time = 99, .kind = "fault"});  // of an earlier run
  int64_t step = 0;
  for (const auto& [kind, times] : kinds)
    for (int i = 0; i < times; ++i) ++step, run.events.push_back({.time = 100.0 + static_cast<double>(step), .kind = kind, .step = step});
  return run;
}

TEST(KeptNotes, OfEventsWhatStandsNowhereElseComesFirst) {
  ReportRun run = noted_run();
  run.overview = events_of_run({{"fault", 2}, {"spike", 500}, {"save", 300}, {"restart", 98}, {"alarm", 1}});
  run.overview.events.push_back({.time = 5000, .kind = "skip", .by = "launch", .step = 5000});
  const NotesJson data = data_of_run(run);
  EXPECT_EQ(data["all"]["events"], 2 + 500 + 98 + 1 + 1);
  EXPECT_EQ(data["all"]["saves"], 300);
  // 101 that stand nowhere else, the alarm, and the latest 298 spikes.
  std::vector<int64_t> expected = {1, 2};
  for (const int64_t s : steps_from_to(2 + 500 - 298 + 1, 2 + 500)) expected.push_back(s);
  for (const int64_t s : steps_from_to(802 + 1, 802 + 98 + 1)) expected.push_back(s);
  expected.push_back(5000);
  EXPECT_EQ(steps_in(data["events"]), expected);
  EXPECT_EQ(expected.size(), 400u);

  run.overview = events_of_run({{"save", 500}, {"fault", 10}});
  EXPECT_EQ(steps_in(data_of_run(run)["events"]), steps_from_to(111, 510)) << "saves have the room that is left";
}

TEST(KeptNotes, AreAllWhereThereIsRoom) {
  ReportRun run = noted_run();
  for (int64_t step = 1; step <= 200; ++step) {
    run.notes.losses.push_back(
        {.step = step, .kind = "spike", .cause = "", .action = "", .reason = "", .loss = static_cast<double>(-step)});
    run.notes.alarms.push_back({.step = step, .rule = "", .evidence = "", .advice = ""});
  }
  run.overview = events_of_run({{"save", 399}, {"fault", 1}});
  const NotesJson data = data_of_run(run);
  EXPECT_EQ(steps_in(data["losses"]), steps_from_to(1, 200));
  EXPECT_EQ(steps_in(data["alarms"]), steps_from_to(1, 200));
  EXPECT_EQ(steps_in(data["events"]), steps_from_to(1, 400));
}

}  // namespace
}  // namespace hlat
