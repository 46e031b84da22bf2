// metrics.jsonl and the run folder: exact numbers, readable while the run goes on, nothing overwritten, clear refusals.
#include "record/metrics.h"

#include <gtest/gtest.h>

#include <map>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "record/run_folder.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

struct TempFolder {
  test::TempDir dir;
  fs::path path{dir.path()};
};

std::vector<nlohmann::json> read_lines(const fs::path& file) {
  std::vector<nlohmann::json> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

StepMetrics sample(int64_t step) {
  StepMetrics m;
  m.step = step;
  m.tokens = step * 4096;
  m.loss = std::nextafter(1.1, 2.0);
  m.floor = 1.0 / 3;
  m.grad_norm = 1e-300;
  m.param_norm = 1542.0000000001;
  m.lr = 3e-4;
  m.step_s = 0.1;
  m.tokens_per_s = 40960;
  m.mfu = 0.75;
  m.hfu = 0.8;
  m.data_wait_s = 5e-324;
  return m;
}

TEST(Metrics, EveryLineRoundTripsExactlyAndIsThereAtOnce) {
  TempFolder folder;
  MetricsWriter writer(folder.path / "metrics.jsonl");
  for (int64_t step = 1; step <= 3; ++step) {
    writer.write(sample(step));
    const auto lines = read_lines(folder.path / "metrics.jsonl");  // the writer is still open
    ASSERT_EQ(lines.size(), static_cast<size_t>(step));
    const auto& line = lines.back();
    EXPECT_EQ(line.at("step").get<int64_t>(), step);
    EXPECT_EQ(line.at("tokens").get<int64_t>(), step * 4096);
    size_t fields = 2;
    scalars(sample(step), [&](const char* name, double value) {
      EXPECT_EQ(line.at(name).get<double>(), value) << name;
      ++fields;
    });
    EXPECT_EQ(line.size(), fields);
  }
}

TEST(Metrics, RecordsAllFieldsOfTheDesign) {
  TempFolder folder;
  MetricsWriter(folder.path / "m").write(sample(1));
  const auto line = read_lines(folder.path / "m").at(0);
  for (const char* key :
       {"step", "tokens", "loss", "floor", "grad_norm", "param_norm", "lr", "step_s", "tokens_per_s", "mfu", "hfu", "data_wait_s"})
    EXPECT_TRUE(line.contains(key)) << key;
}

TEST(Metrics, UnknownFloorIsLeftOutAndNonFiniteValuesAreNull) {
  TempFolder folder;
  StepMetrics m = sample(1);
  m.floor = std::nan("");
  m.loss = std::nan("");
  m.grad_norm = std::numeric_limits<double>::infinity();
  MetricsWriter(folder.path / "m").write(m);
  const auto line = read_lines(folder.path / "m").at(0);
  EXPECT_FALSE(line.contains("floor"));
  EXPECT_TRUE(line.at("loss").is_null());
  EXPECT_TRUE(line.at("grad_norm").is_null());
  EXPECT_EQ(line.at("not_finite"), nlohmann::json({{"loss", "nan"}, {"grad_norm", "inf"}}));
}

TEST(Metrics, ANanOfTheHeldOutDocumentsIsNotTheSameAsNotLooking) {
  TempFolder folder;
  StepMetrics m = sample(1);
  MetricsWriter(folder.path / "m").write(m);
  m.val_loss = std::nan("");
  MetricsWriter(folder.path / "m").write(m);
  const auto lines = read_lines(folder.path / "m");
  EXPECT_FALSE(lines.at(0).contains("val_loss"));
  EXPECT_FALSE(lines.at(0).contains("not_finite"));
  EXPECT_TRUE(lines.at(1).at("val_loss").is_null());
  EXPECT_EQ(lines.at(1).at("not_finite").at("val_loss"), "nan");
}

TEST(Metrics, ErrorsNameTheFileAndTheReason) {
  const std::string missing = error_of([] { MetricsWriter("/nowhere/at/all/m.jsonl"); });
  EXPECT_NE(missing.find("/nowhere/at/all/m.jsonl"), std::string::npos) << missing;
  EXPECT_NE(missing.find("No such file"), std::string::npos) << missing;
  const std::string full = error_of([] { MetricsWriter("/dev/full").write(sample(1)); });
  EXPECT_NE(full.find("/dev/full: No space left"), std::string::npos) << full;
}

TEST(RunFolder, HoldsConfigMetricsEventsAndLog) {
  TempFolder folder;
  const fs::path dir = folder.path / "runs" / "first";
  RunFolder run(dir, "run:\n  seed: 1\n", true);
  run.record(sample(1));
  run.log().info("hello");
  EXPECT_EQ(read_text(dir / "config.yaml"), "run:\n  seed: 1\n");
  EXPECT_EQ(read_lines(dir / "metrics.jsonl").size(), 1u);
  EXPECT_NE(read_text(dir / "log.txt").find("info hello"), std::string::npos);
  int events = 0;
  for (const auto& e : fs::directory_iterator(dir)) events += e.path().filename().string().starts_with("events.out.tfevents.");
  EXPECT_EQ(events, 1);
}

TEST(RunFolder, MovesAnEarlierRunAsideAndLeavesOtherFilesAlone) {
  TempFolder folder;
  std::ofstream(folder.path / "notes.txt") << "mine";
  for (const char* config : {"one", "two", "three"}) RunFolder(folder.path, config, true).record(sample(1));
  EXPECT_EQ(read_text(folder.path / "config.yaml"), "three");
  EXPECT_EQ(read_text(folder.path / "previous_1" / "config.yaml"), "one");
  EXPECT_EQ(read_text(folder.path / "previous_2" / "config.yaml"), "two");
  for (const char* part : {"", "previous_1", "previous_2"}) {
    EXPECT_EQ(read_lines(folder.path / part / "metrics.jsonl").size(), 1u) << part;
    int events = 0;
    for (const auto& e : fs::directory_iterator(folder.path / part)) events += e.path().filename().string().starts_with("events.");
    EXPECT_EQ(events, 1) << part;
  }
  EXPECT_EQ(read_text(folder.path / "notes.txt"), "mine");
  EXPECT_NE(read_text(folder.path / "log.txt").find("moved to " + (folder.path / "previous_2").string()), std::string::npos);
  EXPECT_EQ(read_text(folder.path / "previous_1" / "log.txt").find("moved"), std::string::npos);
}

TEST(RunFolder, WithoutTensorboardWritesNoEvents) {
  TempFolder folder;
  RunFolder(folder.path, "", false).record(sample(1));
  for (const auto& e : fs::directory_iterator(folder.path)) EXPECT_FALSE(e.path().filename().string().starts_with("events"));
}

TEST(RunFolder, RefusesClearly) {
  TempFolder folder;
  std::ofstream(folder.path / "file") << "x";
  const auto open = [](const fs::path& dir) { return error_of([&] { RunFolder(dir, "", true); }); };
  EXPECT_NE(open(folder.path / "file").find("/file is a file, not a folder"), std::string::npos);
  const std::string below = open(folder.path / "file" / "run");
  EXPECT_NE(below.find("/file/run: Not a directory"), std::string::npos) << below;
  EXPECT_EQ(read_text(folder.path / "file"), "x");
}

TEST(RunFolder, OneRunAtATime) {
  TempFolder folder;
  {
    RunFolder first(folder.path, "first", false);
    const std::string busy = error_of([&] { RunFolder(folder.path, "second", false); });
    EXPECT_NE(busy.find("another run is writing to " + folder.path.string()), std::string::npos) << busy;
    EXPECT_EQ(read_text(folder.path / "config.yaml"), "first");
  }
  EXPECT_NO_THROW(RunFolder(folder.path, "second", false));
}

TEST(Metrics, LossesOfSourcesHaveTheirNames) {
  StepMetrics m;
  m.val_loss = m.val_ppl = m.val_bpb = 2;
  m.val_losses = {{"web", 1.5}, {"books/held_out", 2.5}};
  std::map<std::string, double> seen;
  scalars(m, [&](const char* name, double value) { seen[name] = value; });
  EXPECT_EQ(seen["val_loss/web"], 1.5);
  EXPECT_EQ(seen["val_loss/books/held_out"], 2.5);
}

TEST(Metrics, RowsOfSourcesAreCountsOfTheirNames) {
  TempFolder folder;
  StepMetrics m = sample(1);
  m.source_rows = {{"web", 12}, {"books", 0}};
  MetricsWriter writer(folder.path / "m");
  writer.write(m);
  m.computed = false, m.skipped = true;
  writer.write(m);
  for (const nlohmann::json& line : read_lines(folder.path / "m")) {
    EXPECT_EQ(line.at("rows/web"), 12);
    EXPECT_EQ(line.at("rows/books"), 0) << "a source that could have had some";
  }
}

Monitors sample_monitors() {
  Monitors m;
  m.grad_norm = {1.5, std::numeric_limits<double>::infinity(), 0.25};
  m.max_lse = {-0.5};
  m.moment2_max = std::nan("");
  m.source_loss = {{"web", 2.5}, {"code", std::nan("")}};
  m.leak = 0;
  return m;
}

TEST(Metrics, ASkippedStepHasWhatFp8CouldNotHold) {
  const TempFolder folder;
  const fs::path file = folder.path / "metrics.jsonl";
  StepMetrics m = sample(10);
  m.skipped = true;
  m.monitors.emplace();
  m.monitors->fp8_saturated = {0.25, 0, 0}, m.monitors->fp8_lost = {0, 0.5, 0};
  MetricsWriter(file).write(m);
  EXPECT_EQ(read_lines(file)[0]["monitors"], nlohmann::json::parse(R"({"fp8_saturated": [0.25, 0, 0], "fp8_lost": [0, 0.5, 0]})"));
}

TEST(Metrics, MonitorsAreAnObjectOfTheirStep) {
  const TempFolder folder;
  const fs::path file = folder.path / "metrics.jsonl";
  StepMetrics m = sample(10);
  MetricsWriter writer(file);
  writer.write(m);
  m.monitors = sample_monitors();
  writer.write(m);
  const std::vector<nlohmann::json> lines = read_lines(file);
  EXPECT_FALSE(lines[0].contains("monitors"));
  const nlohmann::json& found = lines[1]["monitors"];
  EXPECT_EQ(found["grad_norm"], nlohmann::json::parse("[1.5, null, 0.25]"));
  EXPECT_EQ(found["not_finite"]["grad_norm/1"], "inf");
  EXPECT_EQ(found["not_finite"]["moment2_max"], "nan");
  EXPECT_EQ(found["max_lse"], nlohmann::json::parse("[-0.5]"));
  EXPECT_EQ(found["source_loss"]["web"], 2.5);
  EXPECT_TRUE(found["source_loss"]["code"].is_null());
  EXPECT_EQ(found["not_finite"]["source_loss/code"], "nan");
  EXPECT_EQ(found["leak"], 0);
  EXPECT_FALSE(found.contains("probe_loss"));
  EXPECT_FALSE(found.contains("max_logit"));
  EXPECT_EQ(lines[1]["loss"], m.loss);
  m.computed = false, m.skipped = true;
  writer.write(m);
  EXPECT_FALSE(read_lines(file)[2].contains("monitors"));
}

}  // namespace
}  // namespace hlat
