// Alarms of the real program: what a run with planted spikes tells, where it tells it, and how it ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/checkpoint_folder.h"
#include "support/event_file.h"
#include "support/tiny_runs.h"
#include "train/state_records.h"

namespace hlat::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class AlarmRun : public TinyRuns {
 protected:
  AlarmRun() : TinyRuns(60, 5, 30) {}

  // Tags in TensorBoard's file.
  std::set<std::string> tags(const std::string& run) const {
    std::set<std::string> found;
    for (const auto& file : std::filesystem::directory_iterator(dir_.path(run))) {
      if (!file.path().filename().string().starts_with("events.out.")) continue;
      for (const std::string& record : read_records(file.path())) {
        const auto event = parse(record);
        if (!event.contains(5)) continue;
        for (const auto& [number, value] : parse(only_field(event, 5).bytes)) found.insert(only_field(parse(value.bytes), 1).bytes);
      }
    }
    return found;
  }
};

TEST_F(AlarmRun, ASpikeIsToldOnceWithItsDocuments) {
  const RunResult run = train("told", {"fault.inject=spike step=40; spike step=42"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(events("told", "spike").size(), 2u);
  const std::vector<Json> alarms = events("told", "alarm");
  ASSERT_EQ(alarms.size(), 1u) << "one for both";
  EXPECT_EQ(alarms[0]["rule"], "spike");
  EXPECT_EQ(alarms[0]["step"], 40);
  EXPECT_EQ(alarms[0]["action"], "continue");
  EXPECT_NE(alarms[0]["evidence"].get<std::string>().find("document"), std::string::npos) << alarms[0];
  EXPECT_NE(alarms[0]["advice"].get<std::string>().find("hlat data inspect --step"), std::string::npos) << alarms[0];
  EXPECT_TRUE(tags("told").contains("alarm/spike") && tags("told").contains("alarm/spike/evidence"));
  EXPECT_NE(run.err.find("step 40: alarm spike: "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("  try: "), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("alarms       spike"), std::string::npos) << run.out;
  const RunResult shown = run_binary({"runs", "show", dir_.path("told")});
  EXPECT_NE(shown.out.find("alarms: spike"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("alarm: spike at step 40"), std::string::npos) << shown.out;
  const AlarmState saved = saved_alarms(read_index(dir_.path("told/checkpoints/step_60")));
  EXPECT_EQ(saved.times(), 1);
}

TEST_F(AlarmRun, AnAlarmEndsTheRunWhereItIsAskedTo) {
  const Words spike = {"fault.inject=spike step=40", "loss.on_alarm=stop"};
  const RunResult ended = train("ended", spike);
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  for (const char* word : {"at step 40", "alarm spike", "loss.on_alarm = stop"})
    EXPECT_NE(ended.err.find(word), std::string::npos) << word << " in " << ended.err;
  ASSERT_EQ(events("ended", "alarm").size(), 1u);
  EXPECT_EQ(events("ended", "alarm")[0]["action"], "stop");
  EXPECT_EQ(events("ended", "end")[0]["exit_code"], 5);
  // A batch that is left out is answered; and rules that are not asked for say nothing.
  for (const char* word : {"loss.on_spike=skip", "loss.alarms=none", "loss.alarms=leak,loss_rise"}) {
    Words calm = spike;
    calm.push_back(word);
    const RunResult run = train("calm", calm);
    EXPECT_EQ(run.exit_code, 0) << word << run.err;
    std::filesystem::remove_all(dir_.path("calm"));
  }
}

class HealthyResume : public TinyRuns {
 protected:
  HealthyResume() : TinyRuns(240, 10, 120) {}
  AlarmState alarms_at_end(const std::string& run) const { return saved_alarms(read_index(step(run, 240))); }
};

// A healthy run that dies after its save, and the same command again. What the rules remember of the first half came with the checkpoint:
// at the end it is what the run in one piece remembers, number by number.
TEST_F(HealthyResume, RaisesNoAlarmAndRemembersWhatTheRunInOnePieceDoes) {
  for (const char* precision : {"train.precision=bf16_sr", "train.precision=fp8"}) {
    const Words died = {precision, "fault.inject=kill rank=0 step=150"};
    EXPECT_NE(train("parts", died).exit_code, 0);
    const RunResult resumed = train("parts", died), whole = train("whole", {precision});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    for (const char* run : {"parts", "whole"}) EXPECT_TRUE(events(run, "alarm").empty()) << precision << " " << events(run, "alarm")[0];
    EXPECT_EQ(events("parts", "start").size(), 2u);
    EXPECT_EQ(metrics("parts").back()["loss"], metrics("whole").back()["loss"]);
    EXPECT_FALSE(alarms_at_end("whole").memories.empty());
    EXPECT_TRUE(alarms_at_end("parts") == alarms_at_end("whole")) << precision << ": other memories after a resume";
    for (const char* run : {"parts", "whole"}) std::filesystem::remove_all(dir_.path(run));
  }
}

TEST_F(AlarmRun, ALeakThatEntersWithAResumeIsToldInItsFirstMeasuredStep) {
  ASSERT_EQ(train("run", {"train.steps=30"}).exit_code, 0);
  const RunResult resumed = train("run", {"fault.inject=leak step=31"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const std::vector<Json> alarms = events("run", "alarm");
  ASSERT_FALSE(alarms.empty());
  EXPECT_EQ(alarms[0]["rule"], "leak");
  EXPECT_EQ(alarms[0]["step"], 40);
}

TEST_F(AlarmRun, UnknownNamesAreBadInput) {
  const RunResult wrong = train("wrong", {"loss.alarms=leek"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("did you mean leak?"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace hlat::test
