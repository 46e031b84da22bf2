// Run folders as a report reads them: some under way, empty, given twice or damaged.
#include "report/report_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "report/runs_table.h"
#include "report/step_clock.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

TEST(ReportFolders, AreRunsOrHoldThem) {
  const test::TempDir dir;
  for (const char* name : {"runs/a", "runs/b", "empty"}) std::filesystem::create_directories(dir.path(name));
  dir.write("runs/a/metrics.jsonl", "{\"step\":1,\"tokens\":1,\"loss\":2}\n");
  dir.write("runs/b/events.jsonl", "");
  dir.write("file", "");
  EXPECT_EQ(report_folders({dir.path("runs"), dir.path("runs/a"), dir.path("runs/a/"), dir.path("runs/../runs/a")}).size(), 2u)
      << "each once";
  EXPECT_NE(message_of([&] { report_folders({dir.path("empty")}); }).find("is no run folder and holds none"), std::string::npos);
  EXPECT_NE(message_of([&] { report_folders({dir.path("file")}); }).find("is a file"), std::string::npos);
  EXPECT_NE(message_of([&] { report_folders({dir.path("nowhere")}); }).find("there is no folder"), std::string::npos);
  EXPECT_NE(message_of([&] { read_report_runs({dir.path("runs/b")}); }).find("has no metrics yet"), std::string::npos);
  EXPECT_THROW(read_report_runs({dir.path("runs/b")}), UsageError);
  EXPECT_EQ(read_report_runs({dir.path("runs/b")}, true).size(), 1u);
  const std::vector<ReportRun> begun = read_report_runs({dir.path("runs/b"), dir.path("runs/a")});
  ASSERT_EQ(begun.size(), 1u) << "one that has not begun does not keep the others from their report";
  EXPECT_EQ(begun[0].name, "a");
}

TEST(ReportFolders, ShortNamesTellThemApart) {
  EXPECT_EQ(short_names({"runs/a", "runs/b/"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(short_names({"x/run", "y/run", "z"}), (std::vector<std::string>{"x/run", "y/run", "z"}));
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(short_names({".", "x/.."}), (std::vector<std::string>{here.filename().string(), here.filename().string()}));
}

TEST(ReportRuns, ReadLossesAlarmsMixtureAndRow) {
  const test::TempDir dir;
  dir.write("metrics.jsonl",
            "{\"step\":1,\"tokens\":8,\"loss\":3,\"step_s\":9,\"tokens_per_s\":1,\"mfu\":0.1,\"val_loss\":2.5}\n"
            "{\"step\":2,\"tokens\":16,\"loss\":2,\"step_s\":1,\"tokens_per_s\":8,\"mfu\":0.5}\n");
  const std::string time = "\"time\":\"2026-01-02T03:04:05.500Z\",";
  dir.write("events.jsonl",
            "{" + time + "\"kind\":\"start\",\"reason\":\"started\"}\n{" + time +
                "\"kind\":\"spike\",\"step\":2,\"loss\":null,\"median\":2,\"document_count\":9,\"documents\":[{\"source\":\"web\","
                "\"document\":4}]}\n{" +
                time + "\"kind\":\"alarm\",\"step\":2,\"rule\":\"leak\",\"value\":0.5,\"evidence\":\"e\",\"advice\":\"a\"}\nnot json\n");
  dir.write("config.yaml",
            "data: {tokenizer: t.json, sources: [{name: a, path: x, weight: 3}, {name: b, path: y, weight: 1}], stages: [{from_step: 2, "
            "weights: {b: 2}}]}\n");
  const ReportRun run = read_report_runs({dir.path()}).front();
  ASSERT_EQ(run.notes.losses.size(), 1u);
  EXPECT_TRUE(std::isnan(run.notes.losses[0].loss));
  EXPECT_EQ(run.notes.losses[0].documents.at(0).source, "web");
  ASSERT_EQ(run.notes.alarms.size(), 1u);
  EXPECT_EQ(run.notes.alarms[0].rule, "leak");
  ASSERT_EQ(run.mixture.size(), 2u);
  EXPECT_EQ(run.mixture[0].shares.at("a"), 0.75);
  EXPECT_EQ(run.mixture[1].shares, (std::map<std::string, double>{{"b", 1}}));
  EXPECT_TRUE(run.plan.is_null());
  const RunRow row = row_of(run);
  EXPECT_EQ(row.loss, 2);
  EXPECT_EQ(row.val_loss, 2.5);
  EXPECT_EQ(row.tokens_per_s, 8) << "the first step does not count";
  EXPECT_EQ(row.spikes, 1);
  EXPECT_EQ(row.alarms, 1);
  EXPECT_TRUE(row_json(row)["steps"].is_null());
  EXPECT_NE(rows_text({row}).find("2.0000"), std::string::npos);
}

// Events of a run, a second after each other.
std::string events_of(const std::vector<std::string>& told) {
  std::string events;
  int second = 10;
  for (const std::string& rest : told) events += fmt::format("{{\"time\":\"2026-01-02T03:04:{}.500Z\",{}}}\n", second++, rest);
  return events;
}

// As the study and `hlat runs` count them.
TEST(ReportRuns, AnAlarmThatComesAgainAtItsStepIsShownOnce) {
  const test::TempDir dir;
  dir.write("metrics.jsonl", "{\"step\":9,\"tokens\":8,\"loss\":3}\n");
  dir.write("events.jsonl",
            events_of({R"("kind":"start","reason":"started")", R"("kind":"alarm","step":7,"rule":"growth","evidence":"first")",
                       R"("kind":"alarm","step":8,"rule":"growth")", R"("kind":"alarm","step":7,"rule":"leak")",
                       R"("kind":"start","reason":"started again")", R"("kind":"alarm","step":7,"rule":"growth","evidence":"again")"}));
  const ReportRun run = read_report_runs({dir.path()}).front();
  EXPECT_EQ(row_of(run).alarms, 3);
  EXPECT_EQ(run.overview.alarms(), (std::map<std::string, int64_t>{{"growth", 2}, {"leak", 1}}));
  EXPECT_EQ(run.notes.alarms.back().evidence, "again") << "the last writing counts";
}

TEST(ReportRuns, SpikesCountOnceWhateverFollowsThem) {
  const test::TempDir dir;
  dir.write("metrics.jsonl", "{\"step\":9,\"tokens\":8,\"loss\":3}\n");
  dir.write(
      "events.jsonl",
      events_of({R"("kind":"start","reason":"started")", R"("kind":"spike","step":3,"cause":"spike","action":"continue")",
                 R"("kind":"skip","step":5,"cause":"spike","action":"skip")", R"("kind":"skip","step":6,"cause":"asked","action":"skip")",
                 R"("kind":"start","reason":"started again")", R"("kind":"spike","step":3,"cause":"spike","action":"continue")",
                 R"("kind":"skip","step":5,"cause":"spike","action":"skip")"}));
  const ReportRun run = read_report_runs({dir.path()}).front();
  EXPECT_EQ(row_of(run).spikes, 2) << "at steps 3 and 5; step 6 was asked for";
  EXPECT_EQ(run.notes.losses.size(), 3u);
}

TEST(RunsTable, FitsNarrowTerminals) {
  const RunRow row{.name = "a-run-of-the-study", .folder = "x", .state = "finished", .step = 100, .steps = 100, .tokens = 5000};
  EXPECT_EQ(rows_text({row, row, row}), rows_text({row, row, row}, 200));
  const std::string narrow = rows_text({row, row, row}, 60);
  std::istringstream lines(narrow);
  size_t names = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 60u) << line;
    names += line.starts_with("run ");
  }
  EXPECT_EQ(names, 2u) << "two runs beside each other, then the third: " << narrow;
  EXPECT_NE(rows_text({row}, 10).find("a-run-of-the-study"), std::string::npos) << "at least one";
}

// The second attempt went back behind step 2: its steps follow its own ready.
TEST(StepClock, FollowsTheAttempts) {
  RunCurves c;
  for (int64_t s = 1; s <= 4; ++s) c.step.push_back(s), c.tokens.push_back(s), c.curves["step_s"].add(s, 10);
  RunAccount run{.begin = 1000, .until = 1200, .goodput = {}, .attempts = {}, .launched = false};
  run.attempts.push_back({.begin = 1000, .ready = 1005, .end = 1050, .from = 0, .reached = 4});
  run.attempts.push_back({.begin = 1060, .ready = 1070, .end = 1100, .from = 2, .reached = 4});
  EXPECT_EQ(step_clock(c, run, 0), (std::vector<double>{15, 25, 80, 90}));
  EXPECT_EQ(step_clock(c, run, 1094), (std::vector<double>{15, 25, 82, 94})) << "what lies between steps is spread";
  EXPECT_EQ(step_clock(c, {}, 0), (std::vector<double>{10, 20, 30, 40})) << "without events the steps alone";
}

}  // namespace
}  // namespace hlat
