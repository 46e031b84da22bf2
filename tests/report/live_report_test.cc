// What the server answers while runs begin, end and die.
#include "report/live_report.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/machine.h"
#include "record/events.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

class LiveReports : public testing::Test {
 protected:
  void make(const std::string& name) const {
    std::filesystem::create_directories(dir_.path(name));
    dir_.write(name + "/metrics.jsonl", "{\"step\":1,\"tokens\":8,\"loss\":3,\"step_s\":1}\n");
  }
  Served since(const std::string& state) { return live_.answer("/data.json?since=" + state); }
  nlohmann::json data() { return nlohmann::json::parse(live_.answer("/data.json").body); }

  test::TempDir dir_;
  LiveReport live_{{dir_.path()}, "1", 5};
};

TEST_F(LiveReports, DataComeAgainWhereSomethingHasChanged) {
  make("a");
  const nlohmann::json first = data();
  EXPECT_EQ(first["refresh_s"], 5);
  EXPECT_EQ(since(first["state"]).status, 204);
  std::ofstream(dir_.path("a/metrics.jsonl"), std::ios::app) << "{\"step\":2,\"tokens\":16,\"loss\":2}\n";
  const Served more = since(first["state"]);
  ASSERT_EQ(more.status, 200);
  EXPECT_EQ(nlohmann::json::parse(more.body)["runs"][0]["row"]["step"], 2);
  EXPECT_EQ(since(data()["state"]).status, 204);
  // A run under way renews it.
  for (const int step : {1, 2}) {
    const std::string before = data()["state"];
    std::ofstream(dir_.path("a/ledger.json")) << "{\"step\": " << step << std::string(static_cast<size_t>(step), ' ') << "}";
    const Served ledger = since(before);
    ASSERT_EQ(ledger.status, 200);
    EXPECT_EQ(nlohmann::json::parse(ledger.body)["runs"][0]["ledger"]["step"], step);
  }
  EXPECT_EQ(live_.answer("/x").status, 404);
}

TEST_F(LiveReports, RunsThatBeginLaterAreShown) {
  make("b");
  const std::string state = data()["state"];
  make("a");
  const Served more = since(state);
  ASSERT_EQ(more.status, 200);
  const nlohmann::json runs = nlohmann::json::parse(more.body)["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["row"]["folder"], dir_.path("a"));
  EXPECT_EQ(runs[1]["row"]["folder"], dir_.path("b"));
}

TEST_F(LiveReports, AFolderThatIsGoneIsToldAndMayComeBack) {
  EXPECT_THROW(data(), UsageError);
  make("a");
  EXPECT_EQ(data()["runs"].size(), 1u);
  std::filesystem::remove_all(dir_.path("a"));
  EXPECT_THROW(data(), UsageError);
}

// Nothing of its folder changes when its process is killed.
TEST_F(LiveReports, ARunWhoseLauncherDiedRunsNoMore) {
  make("a");
  const pid_t launcher = fork();
  if (launcher == 0) {
    pause();
    _exit(0);
  }
  const nlohmann::json event = {
      {"time", utc_text(wall_time())}, {"kind", "launch"}, {"by", "launch"}, {"host", host_name()}, {"pid", launcher}};
  dir_.write("a/events.jsonl", event.dump() + "\n");
  const nlohmann::json alive = data();
  EXPECT_EQ(alive["runs"][0]["row"]["state"], "running");
  EXPECT_EQ(since(alive["state"]).status, 204);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  const Served dead = since(alive["state"]);
  ASSERT_EQ(dead.status, 200);
  EXPECT_EQ(nlohmann::json::parse(dead.body)["runs"][0]["row"]["state"], "failed");
  EXPECT_EQ(since(data()["state"]).status, 204);
}

}  // namespace
}  // namespace hlat
