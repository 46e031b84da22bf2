// Rows of a study: means and spreads over seeds, gaps to the baseline, and what is left out, from folders that are made by hand.
#include "study/results.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/print.h"
#include "study/result_table.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

class StudyResult : public testing::Test {
 protected:
  StudyResult() {
    study_ = read_study(
        dir_.write("s.yaml",
                   "name: s\nbase: {train: {steps: 100}}\naxes:\n  run.seed: [1, 2]\n  optim.lr: [1e-3, 2e-3]\nbaseline: lr=1e-3\n"),
        collectable_columns());
    runs_ = plan_runs(study_, {}, dir_.path("out"));
  }

  const PlannedRun& named(const std::string& name) const {
    for (const PlannedRun& p : runs_)
      if (p.run.name == name) return p;
    throw std::runtime_error("no run " + name);
  }

  // A run that ends with this code; from step `nan` on its loss is none.
  void make(const std::string& name, double loss, int code = 0, int64_t nan = 1000) const {
    const PlannedRun& run = named(name);
    const fs::path folder = run.config.run.dir;
    fs::create_directories(folder);
    std::ofstream(folder / "config.yaml") << to_yaml(run.config);
    std::ofstream metrics(folder / "metrics.jsonl");
    for (int64_t step = 1; step <= std::min<int64_t>(100, nan); ++step)
      metrics << "{\"step\":" << step << ",\"tokens\":" << 10 * step << ",\"loss\":" << (step < nan ? std::to_string(loss) : "null")
              << ",\"grad_norm\":1.0,\"step_s\":0.5,\"tokens_per_s\":20}\n";
    std::ofstream(folder / "events.jsonl")
        << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"start\",\"step\":0}\n{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":"
           "\"alarm\",\"rule\":\"growth\",\"step\":3}\n"
        << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"end\",\"step\":100,\"reason\":\"r\",\"exit_code\":" << code << "}\n";
    std::ofstream(folder / "summary.json") << "{\"planned_bytes\": 2097152, \"device_bytes\": 0}";
  }

  const RowResult& row(const StudyResults& all, const std::string& name) const {
    for (const RowResult& r : all.rows)
      if (r.name == name) return r;
    throw std::runtime_error("no row " + name);
  }

  TempDir dir_;
  Study study_;
  std::vector<PlannedRun> runs_;
};

TEST_F(StudyResult, RowsHaveMeanSpreadAndGap) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2), make("seed=1+lr=2e-3", 3.5), make("seed=2+lr=2e-3", 3.9);
  const StudyResults all = read_results(study_, runs_);
  ASSERT_EQ(all.rows.size(), 2u);
  const RowResult& base = row(all, "lr=1e-3");
  const SeedSpread& loss = base.figures.at("final_loss");
  EXPECT_NEAR(loss.mean, 3.1, 1e-12);
  EXPECT_NEAR(loss.deviation, std::sqrt(0.02), 1e-12);
  EXPECT_FALSE(base.gap) << "the baseline is not compared with itself";
  const RowResult& other = row(all, "lr=2e-3");
  EXPECT_NEAR(*other.gap, 0.6, 1e-12);
  EXPECT_NEAR(*other.gap_spreads, 0.6 / std::sqrt((0.02 + 0.08) / 2), 1e-9);
  EXPECT_NEAR(other.figures.at("noise_vs_base").mean, 0, 1e-12) << "both losses are flat";
  EXPECT_EQ(other.figures.at("planned_bytes").mean, 2097152);
  EXPECT_FALSE(other.figures.contains("device_bytes")) << "0 is not known";
  EXPECT_EQ(other.alarms.at("growth"), 2);
  EXPECT_EQ(other.ended, 2u);
  EXPECT_TRUE(other.diverged.empty());
}

TEST_F(StudyResult, AGapHasAnEffectSizeAndAConfidenceInterval) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2), make("seed=1+lr=2e-3", 3.5), make("seed=2+lr=2e-3", 3.72);
  const StudyResults all = read_results(study_, runs_);
  const RowResult& other = row(all, "lr=2e-3");
  ASSERT_TRUE(other.gap_interval);
  EXPECT_NEAR(other.gap_interval->low, 0.51 - 12.7062 * 0.01, 1e-4) << "differences of 0.5 and 0.52";
  EXPECT_NEAR(other.gap_interval->high, 0.51 + 12.7062 * 0.01, 1e-4);
  EXPECT_NE(results_table(all, {"gap"}).find("+0.5100 [0.3829, 0.6371] 3.4 sd"), std::string::npos) << results_table(all, {"gap"});
  const std::string text = results_markdown(all, {"gap"});
  EXPECT_NE(text.find("sd: effect size, the gap in units of the seeds' standard deviation"), std::string::npos) << text;
  const nlohmann::json rows = nlohmann::json::parse(results_json(all).dump())["rows"];
  EXPECT_NEAR(rows[1]["gap_low"].get<double>(), 0.3829, 1e-4);
  EXPECT_NEAR(rows[1]["gap_high"].get<double>(), 0.6371, 1e-4);
  EXPECT_TRUE(rows[0]["gap_low"].is_null()) << "the baseline";
}

// What a seed does to a loss, here 0.2, is no gap.
TEST_F(StudyResult, AGapIsOverTheSeedsThatBothRowsHave) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2), make("seed=1+lr=2e-3", 3.5), make("seed=2+lr=2e-3", 3.5, 5, 61);
  const RowResult lacking = row(read_results(study_, runs_), "lr=2e-3");
  EXPECT_NEAR(*lacking.gap, 0.5, 1e-12) << "of seed 1; that of the means is 0.4";
  EXPECT_EQ(lacking.gap_pairs, 1u);
  EXPECT_FALSE(lacking.gap_interval) << "one pair";
  EXPECT_NEAR(*lacking.gap_spreads, 0.5 / std::sqrt(0.02), 1e-9) << "in units of the spread over all seeds";
  make("seed=1+lr=1e-3", 3.0, 5, 61), make("seed=2+lr=2e-3", 3.9);
  EXPECT_NEAR(*row(read_results(study_, runs_), "lr=2e-3").gap, 0.7, 1e-12) << "the baseline lacks seed 1";
}

TEST_F(StudyResult, RowsThatShareNoSeedAreComparedByTheirMeans) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2, 5, 61), make("seed=1+lr=2e-3", 3.5, 130), make("seed=2+lr=2e-3", 3.9);
  const StudyResults all = read_results(study_, runs_);
  EXPECT_NEAR(*row(all, "lr=2e-3").gap, 0.9, 1e-12);
  EXPECT_FALSE(row(all, "lr=2e-3").gap_interval);
  EXPECT_EQ(nlohmann::json::parse(results_json(all).dump())["rows"][1]["gap_pairs"], 0);
}

TEST_F(StudyResult, AnIntervalIsOverTheSharedSeedsOfSeveral) {
  study_ = read_study(dir_.write("t.yaml",
                                 "name: t\nbase: {train: {steps: 100}}\naxes:\n  run.seed: [1, 2, 3]\n  optim.lr: [1e-3, 2e-3]\n"
                                 "baseline: lr=1e-3\n"),
                      collectable_columns());
  runs_ = plan_runs(study_, {}, dir_.path("t"));
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2), make("seed=3+lr=1e-3", 9.0);
  make("seed=1+lr=2e-3", 3.5), make("seed=2+lr=2e-3", 3.72);
  const RowResult other = row(read_results(study_, runs_), "lr=2e-3");
  EXPECT_NEAR(*other.gap, 0.51, 1e-12);
  EXPECT_EQ(other.gap_pairs, 2u);
  ASSERT_TRUE(other.gap_interval);
  EXPECT_NEAR((other.gap_interval->low + other.gap_interval->high) / 2, 0.51, 1e-12) << "of the same pairs";
}

TEST_F(StudyResult, RunsThatAreNotOverAreLeftOutAndDivergedOnesTold) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 9.0, 130), make("seed=1+lr=2e-3", 3.5, 5, 61);
  const StudyResults all = read_results(study_, runs_);
  const RowResult& base = row(all, "lr=1e-3");
  EXPECT_EQ(base.runs, 2u);
  EXPECT_EQ(base.ended, 1u);
  EXPECT_NEAR(base.figures.at("final_loss").mean, 3.0, 1e-12);
  EXPECT_TRUE(std::isnan(base.figures.at("final_loss").deviation));
  const RowResult& other = row(all, "lr=2e-3");
  EXPECT_EQ(other.diverged, std::vector<int64_t>{61});
  EXPECT_FALSE(other.figures.contains("final_loss"));
  EXPECT_FALSE(other.gap);
  const std::string table = results_table(all, {});
  EXPECT_NE(table.find("1 of 2"), std::string::npos) << table;
  EXPECT_NE(table.find("1 of 1 at 61"), std::string::npos) << table;
}

// A loss that is not finite ends a run before its step is recorded; the events have it.
TEST_F(StudyResult, ADivergenceThatTheMetricsDoNotHaveBeginsWithItsRise) {
  make("seed=1+lr=1e-3", 3.0, 5);
  const fs::path folder = named("seed=1+lr=1e-3").config.run.dir;
  std::ofstream metrics(folder / "metrics.jsonl");
  for (int64_t step = 1; step <= 90; ++step)
    metrics << fmt::format("{{\"step\":{},\"tokens\":{},\"loss\":{},\"grad_norm\":1.0,\"step_s\":0.5}}\n", step, 10 * step,
                           step <= 60 ? 3.0 : 3.0 + 0.2 * static_cast<double>(step - 60));
  metrics.close();
  std::ofstream(folder / "events.jsonl")
      << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"start\",\"step\":0}\n"
      << "{\"time\":\"2026-11-16T04:45:28.000Z\",\"kind\":\"non_finite\",\"step\":91,\"reason\":\"r\"}\n"
      << "{\"time\":\"2026-11-16T04:45:28.000Z\",\"kind\":\"end\",\"step\":91,\"reason\":\"r\",\"exit_code\":5}\n";
  const std::vector<int64_t> rise = row(read_results(study_, runs_), "lr=1e-3").diverged;
  ASSERT_EQ(rise.size(), 1u);
  EXPECT_GT(rise[0], 60);
  EXPECT_LT(rise[0], 80);
  // Out of the blue it is the step itself.
  std::ofstream calm(folder / "metrics.jsonl");
  for (int64_t step = 1; step <= 90; ++step)
    calm << fmt::format("{{\"step\":{},\"tokens\":{},\"loss\":3.0,\"grad_norm\":1.0,\"step_s\":0.5}}\n", step, 10 * step);
  calm.close();
  EXPECT_EQ(row(read_results(study_, runs_), "lr=1e-3").diverged, std::vector<int64_t>{91});
}

TEST_F(StudyResult, NoiseAgainstTheBaselineLeavesOutWhatBothHave) {
  make("seed=1+lr=1e-3", 3.0), make("seed=1+lr=2e-3", 3.0);
  // Batches that are hard for both, and a wobble of one.
  for (const auto& [name, own] : {std::pair{"seed=1+lr=1e-3", 0.0}, std::pair{"seed=1+lr=2e-3", 0.01}}) {
    std::ofstream metrics(fs::path(named(name).config.run.dir) / "metrics.jsonl");
    for (int step = 1; step <= 400; ++step)
      metrics << "{\"step\":" << step << ",\"tokens\":" << step
              << ",\"loss\":" << 3 + (step % 7 == 0 ? 0.5 : 0.0) + (step % 2 == 0 ? own : -own) << ",\"grad_norm\":1.0}\n";
  }
  const StudyResults all = read_results(study_, runs_);
  EXPECT_NEAR(row(all, "lr=2e-3").figures.at("noise_vs_base").mean, 0.01, 5e-4);
  EXPECT_GT(row(all, "lr=2e-3").figures.at("noise").mean, 0.1);
}

TEST_F(StudyResult, NoiseAgainstABaselineThatIsNotOverIsLeftOut) {
  make("seed=1+lr=1e-3", 3.0, 130), make("seed=1+lr=2e-3", 3.0);
  EXPECT_FALSE(row(read_results(study_, runs_), "lr=2e-3").figures.contains("noise_vs_base"));
}

TEST_F(StudyResult, RunsOfAnotherConfigAreInNoRow) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2);
  runs_[0].config.optim.beta2 = 0.5;  // the study was edited since
  const StudyResults all = read_results(study_, runs_);
  EXPECT_EQ(row(all, "lr=1e-3").ended, 1u);
  EXPECT_NEAR(row(all, "lr=1e-3").figures.at("final_loss").mean, 3.2, 1e-12);
  fs::remove_all(runs_[0].config.run.dir);
  EXPECT_EQ(loss_svg(all), loss_svg(read_results(study_, runs_))) << "nor in a curve";
  EXPECT_EQ(nlohmann::json::parse(results_json(all).dump())["runs"][0]["contradicts"][0], "optim.beta2 0.95 -> 0.5");
}

TEST_F(StudyResult, ChosenRowsAreComparedWithABaselineThatIsNotChosen) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2), make("seed=1+lr=2e-3", 3.5), make("seed=2+lr=2e-3", 3.9);
  const StudyResults all = read_results(study_, runs_);
  const StudyResults other = results_of(study_, all, chosen_runs(study_, runs_, {"lr=2e-3"}));
  ASSERT_EQ(other.rows.size(), 1u);
  EXPECT_EQ(other.runs.size(), 2u);
  EXPECT_EQ(other.rows[0].gap, row(all, "lr=2e-3").gap);
  EXPECT_EQ(other.rows[0].gap_spreads, row(all, "lr=2e-3").gap_spreads);
  EXPECT_TRUE(other.rows[0].figures.contains("noise_vs_base"));
  // A baseline that is chosen in part is compared as it is shown.
  const StudyResults seed = results_of(study_, all, chosen_runs(study_, runs_, {"seed=1"}));
  ASSERT_EQ(seed.rows.size(), 2u);
  EXPECT_NEAR(*row(seed, "lr=2e-3").gap, 0.5, 1e-12);
  EXPECT_FALSE(row(seed, "lr=2e-3").gap_spreads) << "one run each";
}

TEST_F(StudyResult, AFolderThatCannotBeReadLeavesTheOthersTheirResults) {
  make("seed=1+lr=1e-3", 3.0), make("seed=1+lr=2e-3", 3.5);
  const fs::path metrics = fs::path(named("seed=1+lr=1e-3").config.run.dir) / "metrics.jsonl";
  fs::remove(metrics);
  fs::create_directories(metrics);  // reading it fails
  const StudyResults all = read_results(study_, runs_);
  EXPECT_EQ(row(all, "lr=1e-3").ended, 0u);
  EXPECT_EQ(row(all, "lr=2e-3").ended, 1u);
  EXPECT_EQ(name_of(all.runs[0].standing.standing), "unreadable");
  EXPECT_NE(all.runs[0].standing.reason.find("metrics.jsonl is no file"), std::string::npos) << all.runs[0].standing.reason;
}

TEST_F(StudyResult, AlarmsAreThoseOfTheRunThatTheFolderHasNow) {
  make("seed=1+lr=1e-3", 3.0);
  std::ofstream events(fs::path(named("seed=1+lr=1e-3").config.run.dir) / "events.jsonl");
  const auto tell = [&](int second, const std::string& rest) {
    events << "{\"time\":\"2026-11-16T04:45:" << second << ".000Z\"," << rest << "}\n";
  };
  tell(10, R"("kind":"start","step":0,"reason":"started")");
  tell(11, R"("kind":"alarm","rule":"leak","step":9)");
  tell(12, R"("kind":"end","step":9,"reason":"r","exit_code":130)");
  tell(20, R"("kind":"start","step":0,"reason":"started")");  // anew
  tell(21, R"("kind":"alarm","rule":"growth","step":7)");
  tell(22, R"("kind":"alarm","rule":"growth","step":8)");
  tell(23, R"("kind":"start","step":5,"reason":"resumed")");
  tell(24, R"("kind":"alarm","rule":"growth","step":7)");
  tell(25, R"("kind":"end","step":100,"reason":"r","exit_code":0)");
  events.close();
  EXPECT_EQ(row(read_results(study_, runs_), "lr=1e-3").alarms, (std::map<std::string, int64_t>{{"growth", 2}}));
}

// As behind a disk that lost its last blocks, or a hand that cut the file.
TEST_F(StudyResult, MetricsThatEndBeforeTheRunHaveNoFinalLoss) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.2);
  const fs::path file = fs::path(named("seed=2+lr=1e-3").config.run.dir) / "metrics.jsonl";
  std::ofstream(file) << R"({"step":60,"tokens":600,"loss":5,"grad_norm":1,"val_loss":5})"
                      << "\n";
  const StudyResults all = read_results(study_, runs_);
  EXPECT_NEAR(row(all, "lr=1e-3").figures.at("final_loss").mean, 3.0, 1e-12);
  EXPECT_FALSE(row(all, "lr=1e-3").figures.contains("val_loss"));
  for (const RunFigures& run : all.runs) EXPECT_EQ(run.metrics_end_early(), run.name == "seed=2+lr=1e-3") << run.name;
  // A last step that was passed over has a line, and no norm.
  std::ofstream(file, std::ios::app) << R"({"step":99,"tokens":990,"loss":3.2,"grad_norm":1})"
                                     << "\n"
                                     << R"({"step":100,"tokens":1000,"loss":null,"skipped":1})"
                                     << "\n";
  EXPECT_EQ(row(read_results(study_, runs_), "lr=1e-3").figures.at("final_loss").count, 2u);
}

// train.epochs: the steps are known when the run is ready.
TEST_F(StudyResult, TheLengthOfARunMayBeItsOwn) {
  make("seed=1+lr=1e-3", 3.0);
  for (PlannedRun& p : runs_) p.config.train.steps = 0;
  const auto ready = [&](int total) {
    std::ofstream(fs::path(named("seed=1+lr=1e-3").config.run.dir) / "events.jsonl", std::ios::app)
        << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"ready\",\"total\":" << total << "}\n";
    return read_results(study_, runs_);
  };
  EXPECT_TRUE(row(ready(100), "lr=1e-3").figures.contains("final_loss"));
  EXPECT_FALSE(row(ready(130), "lr=1e-3").figures.contains("final_loss"));
}

// As one that had only evaluations left to make.
TEST_F(StudyResult, AProcessThatTrainedNothingTellsNoMemory) {
  make("seed=1+lr=1e-3", 3.0);
  const auto summary = [&](int first) {
    std::ofstream(fs::path(named("seed=1+lr=1e-3").config.run.dir) / "summary.json")
        << "{\"steps\": 100, \"first_step\": " << first << ", \"planned_bytes\": 5, \"device_bytes\": 6, \"resident_bytes\": 7}";
    return row(read_results(study_, runs_), "lr=1e-3").figures;
  };
  EXPECT_EQ(summary(100).at("resident_bytes").mean, 7) << "one step";
  const auto none = summary(101);
  for (const char* key : {"planned_bytes", "device_bytes", "resident_bytes"}) EXPECT_FALSE(none.contains(key)) << key;
}

// Records of a run that has just begun, and odd ones.
TEST_F(StudyResult, CurvesOfFewStepsAreDrawnAndOddRecordsDoNoHarm) {
  make("seed=1+lr=1e-3", 3.0, 0, 1000);
  const fs::path metrics = fs::path(named("seed=1+lr=1e-3").config.run.dir) / "metrics.jsonl";
  const auto points = [&] {
    const std::string svg = loss_svg(read_results(study_, runs_));
    const size_t line = svg.find("<polyline points=\"");
    return line == std::string::npos ? std::string() : svg.substr(line, svg.find('/', line) - line);
  };
  std::ofstream(metrics) << R"({"step":1,"tokens":8,"loss":5,"grad_norm":1})"
                         << "\n"
                         << R"({"step":2,"tokens":16,"loss":4,"grad_norm":1})"
                         << "\n";
  EXPECT_NE(points(), "") << loss_svg(read_results(study_, runs_));
  std::ofstream(metrics) << R"({"step":1,"tokens":900,"loss":5,"grad_norm":1})"
                         << "\n"
                         << R"({"step":2,"tokens":-50,"loss":4,"grad_norm":1})"
                         << "\n"
                         << R"({"step":3,"tokens":9,"loss":4,"grad_norm":1,"step_s":2})"
                         << "\n";
  EXPECT_NE(points(), "");
  EXPECT_EQ(row(read_results(study_, runs_), "lr=1e-3").figures.at("step_s").mean, 2) << "of the steps that tell it";
}

TEST_F(StudyResult, TheTableHasTheColumnsThatAreAskedFor) {
  make("seed=1+lr=1e-3", 3.0);
  const StudyResults all = read_results(study_, runs_);
  const std::string table = results_table(all, {"final_loss", "step_s"});
  EXPECT_EQ(table.substr(0, table.find('\n')), "point      runs  final_loss     step_s");
  EXPECT_NE(table.find("lr=1e-3  1 of 2      3.0000  500.00 ms"), std::string::npos) << table;
  const std::string all_columns = results_table(all, {});
  EXPECT_EQ(all_columns.find("drift"), std::string::npos) << "nothing has drift: " << all_columns;
  EXPECT_EQ(all_columns.find("grad_slope"), std::string::npos) << "100 steps: " << all_columns;
  EXPECT_NE(all_columns.find("2.0 MiB"), std::string::npos) << all_columns;
}

// A table sorts by them, so that a GiB is more than a MiB.
TEST_F(StudyResult, CellsHaveTheNumbersBehindThem) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.25), make("seed=1+lr=2e-3", 3.5, 5, 61), make("seed=2+lr=2e-3", 3.5);
  const StudyResults all = read_results(study_, runs_);
  const std::vector<std::string> keys = {"final_loss", "gap", "diverged", "planned_bytes", "drift", "alarms"};
  const auto cells = results_cells(all, keys);
  EXPECT_EQ(cells[0], (std::vector<std::string>{"point", "runs", "final_loss", "gap", "diverged", "drift", "planned_bytes", "alarms"}));
  using Values = std::vector<std::optional<double>>;
  const auto values = results_values(all, keys);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0], (Values{{}, 2, 3.125, {}, 0, {}, 2097152, 2}));
  EXPECT_EQ(values[1], (Values{{}, 2, 3.5, 0.25, 1, {}, 2097152, 2}));
  EXPECT_EQ(cells[1][3], "") << "the baseline is not compared with itself";
  EXPECT_EQ(results_values(read_results(study_, {runs_[0]}), {"final_loss"})[0].size(), results_cells(all, {"final_loss"})[1].size());
  fs::remove_all(dir_.path("out"));
  EXPECT_EQ(results_values(read_results(study_, runs_), keys)[0], (Values{{}, 0, {}, {}, {}, {}, {}, {}})) << "nothing has ended";
}

TEST_F(StudyResult, TheTableNamesColumnsAsCollectDoes) {
  make("seed=1+lr=1e-3", 3.0), make("seed=1+lr=2e-3", 3.5);
  const StudyResults all = read_results(study_, runs_);
  std::vector<std::string> keys;
  for (const std::string_view key : collectable_columns()) keys.emplace_back(key);
  const std::string table = results_table(all, keys), markdown = results_markdown(all, keys);
  for (const std::string& key : keys) {
    EXPECT_NE((" " + table.substr(0, table.find('\n')) + " ").find(" " + key + " "), std::string::npos) << table;
    EXPECT_NE(markdown.find("\n- `" + key + "`: "), std::string::npos) << markdown;
  }
  EXPECT_NE(markdown.find("expected to be large under stochastic rounding, where nothing is lost on average"), std::string::npos);
}

TEST_F(StudyResult, TheNumberOfStepsOfAFinalLossIsTold) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.0, 5, 61);
  const std::string text = results_markdown(read_results(study_, runs_), {});
  EXPECT_NE(text.find("never more than a fifth of the run; ± standard deviation over seeds; here n = 20\n"), std::string::npos) << text;
}

TEST_F(StudyResult, FilesAreWrittenAndWrittenAgain) {
  make("seed=1+lr=1e-3", 3.0), make("seed=2+lr=1e-3", 3.1), make("seed=1+lr=2e-3", 3.5, 5, 61);
  for (int i = 0; i < 2; ++i) write_results(dir_.path("out"), read_results(study_, runs_), {});
  const auto json = nlohmann::json::parse(slurp(dir_.path("out/results.json")));
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["runs"].size(), 4u);
  EXPECT_EQ(json["runs"][1]["diverged"], 61);
  EXPECT_NE(slurp(dir_.path("out/results.md")).find("| lr=1e-3 | 2 | 3.0500 ±0.0707 |"), std::string::npos)
      << slurp(dir_.path("out/results.md"));
  const std::string svg = slurp(dir_.path("out/loss.svg"));
  EXPECT_NE(svg.find("<polygon"), std::string::npos) << "two seeds have a band";
  EXPECT_NE(svg.find("lr=2e-3"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST_F(StudyResult, TwoStudiesWriteTheFilesOfOneFolder) {
  const StudyResults all = read_results(study_, runs_);
  for (const bool child : {true, false}) {
    const pid_t pid = child ? fork() : 0;
    if (pid > 0) continue;
    int failed = 0;
    for (int i = 0; i < 300; ++i) try {
        write_results(dir_.path("out"), all, {});
      } catch (const std::exception&) {
        ++failed;
      }
    if (child) _exit(failed > 0 ? 1 : 0);
    EXPECT_EQ(failed, 0);
  }
  int status = 1;
  wait(&status);
  EXPECT_EQ(status, 0);
  for (const auto& entry : fs::directory_iterator(dir_.path("out"))) EXPECT_NE(entry.path().extension(), ".new") << entry.path();
}

TEST_F(StudyResult, AStudyWithoutRunsHasEmptyResults) {
  write_results(dir_.path("out"), read_results(study_, runs_), {});
  EXPECT_EQ(nlohmann::json::parse(slurp(dir_.path("out/results.json")))["rows"][0]["ended"], 0);
}

}  // namespace
}  // namespace hlat::test
