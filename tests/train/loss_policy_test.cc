// Decisions about steps whose loss is off, and the state they are made from.
#include "train/loss_policy.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "train/loss_event.h"
#include "train/state_records.h"

namespace hlat {
namespace {

constexpr double kLossNan = std::numeric_limits<double>::quiet_NaN();

LossConfig loss_on(const std::string& spike, const std::string& nonfinite, int64_t skips = 10) {
  LossConfig c;
  c.on_spike = spike;
  c.on_nonfinite = nonfinite;
  c.skips = skips;
  return c;
}

// A policy after 20 quiet steps.
struct Quiet {
  LossState state;
  LossPolicy policy;
  explicit Quiet(const LossConfig& config) : policy(config, state) {
    for (int64_t s = 1; s <= 20; ++s) policy.add(s, policy.judge(s, 3, 0.1));
  }
};

TEST(LossPolicy, OnlySkipsNeedADecisionBeforeTheUpdate) {
  EXPECT_FALSE(Quiet(LossConfig()).policy.gates());
  EXPECT_FALSE(Quiet(loss_on("stop", "rollback")).policy.gates());
  EXPECT_TRUE(Quiet(loss_on("skip", "stop")).policy.gates());
  EXPECT_TRUE(Quiet(loss_on("continue", "skip")).policy.gates());
  LossConfig none = loss_on("skip", "stop");
  none.rule = "none";
  EXPECT_FALSE(Quiet(none).policy.gates());
}

TEST(LossPolicy, EachCauseHasItsAnswer) {
  for (const char* word : {"continue", "skip", "rollback", "stop"}) {
    Quiet run(loss_on(word, "stop"));
    const LossVerdict v = run.policy.judge(21, 9, 0.5);
    EXPECT_EQ(v.cause, LossCause::spike);
    EXPECT_EQ(name_of(v.action), word);
    EXPECT_FALSE(v.no_skips_left);
  }
  for (const char* word : {"skip", "rollback", "stop"}) {
    Quiet run(loss_on("continue", word));
    for (const auto& [loss, norm] : {std::pair(kLossNan, kLossNan), std::pair(3.0, kLossNan), std::pair(kLossNan, 0.1)}) {
      const LossVerdict v = run.policy.judge(21, loss, norm);
      EXPECT_EQ(v.cause, LossCause::non_finite);
      EXPECT_EQ(name_of(v.action), word);
    }
  }
  EXPECT_EQ(Quiet(loss_on("stop", "stop")).policy.judge(21, 3.001, 0.1).cause, LossCause::none);
}

TEST(LossPolicy, FailuresNameStepValueAndNorm) {
  Quiet run(loss_on("rollback", "stop"));
  const FailedStep spike = LossPolicy::failure(21, run.policy.judge(21, 9.5, 0.75));
  EXPECT_EQ(spike.kind, FailureKind::spike);
  EXPECT_EQ(spike.step, 21);
  for (const char* word : {"step 21", "9.5", "0.75", "3.0000", "loss.on_spike = rollback"})
    EXPECT_NE(std::string(spike.what()).find(word), std::string::npos) << word << " in " << spike.what();
}

TEST(LossPolicy, NoMoreSkipsThanAllowedInAThousandSteps) {
  Quiet run(loss_on("skip", "skip", 2));
  const auto skip = [&](int64_t step) {
    const LossVerdict v = run.policy.judge(step, kLossNan, kLossNan);
    if (v.action == LossAction::skip) run.policy.add(step, v);
    return v;
  };
  EXPECT_EQ(skip(21).action, LossAction::skip);
  EXPECT_EQ(skip(22).action, LossAction::skip);
  const LossVerdict v = skip(23);
  EXPECT_EQ(v.action, LossAction::stop);
  EXPECT_TRUE(v.no_skips_left);
  EXPECT_EQ(LossPolicy::failure(23, v).kind, FailureKind::skips);
  EXPECT_EQ(skip(1020).action, LossAction::stop) << "21 is one of the last 1000 steps";
  EXPECT_EQ(skip(1021).action, LossAction::skip);
  EXPECT_EQ(run.state.skipped, (std::vector<int64_t>{21, 22, 1021}));
  EXPECT_TRUE(Quiet(loss_on("rollback", "stop", 0)).policy.judge(21, 9, 1).no_skips_left) << "a rollback skips too";
}

TEST(LossPolicy, AskedStepsAreSkippedOnceAndNeverRefused) {
  Quiet run(loss_on("continue", "stop", 0));
  ask_to_skip(run.state, 20, {57, 22, 22, 5});
  EXPECT_EQ(run.state.to_skip, (std::vector<int64_t>{22, 57})) << "those behind lie behind";
  ask_to_skip(run.state, 20, {30, 57});
  EXPECT_EQ(run.state.to_skip, (std::vector<int64_t>{22, 30, 57}));
  EXPECT_FALSE(run.policy.is_asked(21));
  EXPECT_TRUE(run.policy.is_asked(22));
  const SpikeHistory before = run.state.history;
  run.policy.add(22, run.policy.asked());
  EXPECT_EQ(run.state.to_skip, (std::vector<int64_t>{30, 57}));
  EXPECT_EQ(run.state.skipped, (std::vector<int64_t>{22}));
  EXPECT_EQ(run.state.history, before);
}

TEST(LossPolicy, TheStateOfACheckpointDecidesAsTheRun) {
  Quiet run(loss_on("skip", "skip"));
  for (int64_t s = 21; s < 60; ++s) run.policy.add(s, run.policy.judge(s, 1.0 / 3 + 0.01 * static_cast<double>(s % 7), 0.1 / 3));
  run.policy.add(60, run.policy.judge(60, 9, 1));
  ask_to_skip(run.state, 60, {99});
  CheckpointIndex index;
  EXPECT_EQ(saved_loss(index), LossState()) << "of a version that kept none";
  index.records.push_back(to_record(run.state));
  LossState loaded = saved_loss(index);
  EXPECT_EQ(loaded, run.state);
  LossPolicy policy(loss_on("skip", "skip"), loaded);
  for (const double loss : {0.5, 0.6, 0.7, 0.8, 9.0}) {
    const LossVerdict a = run.policy.judge(61, loss, 0.1), b = policy.judge(61, loss, 0.1);
    EXPECT_EQ(a.action, b.action);
    EXPECT_EQ(a.found.median, b.found.median);
    EXPECT_EQ(a.found.spread, b.found.spread);
  }
  index.records[0].json = "{\"losses\": 3}";
  EXPECT_THROW(saved_loss(index), DamagedCheckpoint);
}

Alarm growing_norm() {
  return {
      .rule = AlarmRule::grad_growth, .step = 21, .since = 9, .value = 5, .limit = 2, .evidence = "the norm grows", .advice = "masters"};
}

TEST(LossPolicy, AlarmsAreAnsweredAsTheConfigSays) {
  for (const char* word : {"continue", "rollback", "stop"}) {
    LossConfig config;
    config.on_alarm = word;
    const LossVerdict v = Quiet(config).policy.alarmed(growing_norm(), 3, 0.5);
    EXPECT_EQ(v.cause, LossCause::alarm);
    EXPECT_EQ(name_of(v.action), word);
    if (!v.ends()) continue;
    const FailedStep failed = LossPolicy::failure(21, v);
    EXPECT_EQ(failed.kind, FailureKind::alarm);
    EXPECT_EQ(failed.step, 9) << "where a rollback goes behind";
    EXPECT_EQ(failed.until, 21) << "the last batch that may be the cause";
    for (const char* part : {"step 21", "alarm grad_growth", "the norm grows", "loss.on_alarm = "})
      EXPECT_NE(std::string(failed.what()).find(part), std::string::npos) << part << " in " << failed.what();
  }
}

TEST(LossPolicy, AlarmsOfACheckpointAreThoseOfTheRun) {
  CheckpointIndex index;
  EXPECT_EQ(saved_alarms(index), AlarmState()) << "of a version that kept none";
  AlarmState state;
  state.setup = "x";
  state.memories["leak"]["share"] = {1.0 / 3, 2};
  state.told["leak"] = {.times = 2, .told_at = 5, .seen_at = 6, .distance = 1000, .quiet = 1};
  index.records.push_back(to_record(state));
  EXPECT_EQ(saved_alarms(index), state);
  index.records[0].json = "{}";
  EXPECT_THROW(saved_alarms(index), DamagedCheckpoint);
}

TEST(LossEvent, OfAnAlarmHasItsEvidence) {
  const Alarm alarm = growing_norm();
  const LossEvent event{.step = 21, .verdict = Quiet(LossConfig()).policy.alarmed(alarm, 3, 0.5), .documents = {}, .alarm = alarm};
  EXPECT_STREQ(kind_of(event), "alarm");
  EXPECT_EQ(reason_of(event), "the norm grows");
  const auto j = nlohmann::ordered_json::parse(fields_of(event).dump());
  EXPECT_EQ(j["rule"], "grad_growth");
  EXPECT_EQ(j["value"], 5);
  EXPECT_EQ(j["limit"], 2);
  EXPECT_EQ(j["evidence"], "the norm grows");
  EXPECT_EQ(j["advice"], "masters");
  EXPECT_EQ(j["since"], 9);
  EXPECT_EQ(j["action"], "continue");
}

TEST(LossEvent, NamesTheFirstDocuments) {
  BatchDocuments documents{.count = 5,
                           .first = {{.row = 1, .source = "web", .file = "a.jsonl", .document = 3, .byte = 0, .token = 0, .tokens = 1},
                                     {.row = 0, .source = "embedded", .file = "", .document = 0, .byte = 0, .token = 0, .tokens = 1}}};
  EXPECT_EQ(first_documents(documents, 2), "a.jsonl document 3 (row 1), embedded document 0 (row 0) and 3 more");
  EXPECT_EQ(first_documents({}), "");
}

TEST(LossEvent, HasNumbersAndDocuments) {
  Quiet run(loss_on("continue", "skip"));
  LossEvent event{.step = 21, .verdict = run.policy.judge(21, kLossNan, 0.5), .rows = 4, .documents = {}};
  event.documents = {.count = 9,
                     .first = {{.row = 1, .source = "web", .file = "a.jsonl", .document = 3, .byte = 20, .token = 5, .tokens = 7}}};
  const auto j = nlohmann::ordered_json::parse(fields_of(event).dump());  // as it is written
  EXPECT_STREQ(kind_of(event), "skip");
  EXPECT_EQ(j["cause"], "non_finite");
  EXPECT_TRUE(j["loss"].is_null());
  EXPECT_EQ(j["not_finite"]["loss"], "nan");
  EXPECT_EQ(j["grad_norm"], 0.5);
  EXPECT_EQ(j["median"], 3.0);
  EXPECT_EQ(j["document_count"], 9);
  EXPECT_EQ(j["documents"][0]["file"], "a.jsonl");
  EXPECT_EQ(j["documents"][0]["byte"], 20);
}

}  // namespace
}  // namespace hlat
