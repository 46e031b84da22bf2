// What alarms remember: trouble that lasts is told once and again at growing distances, and a run in parts finds what the uninterrupted one
// does.
#include "alarm/alarms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/made_curves.h"

namespace hlat {
namespace {

TEST(Alarms, ASpikeIsToldOncePerCluster) {
  AlarmState state;
  Alarms alarms(watched(), state);
  std::vector<int64_t> told;
  for (int64_t step = 1; step <= 1000; ++step) {
    const bool spike = (step >= 100 && step < 160 && step % 3 == 0) || step == 500;
    for (const Alarm& alarm : alarms.add(healthy_step(step), spike ? "the loss 9; its batch has a.jsonl document 3 (row 0)" : "")) {
      EXPECT_EQ(alarm.rule, AlarmRule::spike);
      EXPECT_NE(alarm.evidence.find("document 3"), std::string::npos);
      told.push_back(step);
    }
  }
  EXPECT_EQ(told, (std::vector<int64_t>{102, 500}));
  EXPECT_EQ(state.times(), 2);
}

TEST(Alarms, WhatLastsIsToldAgainAtGrowingDistances) {
  std::vector<int64_t> told;
  for (const Alarm& alarm : alarms_of(watched(), 22000, 1000, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.drift = 1; }); }))
    told.push_back(alarm.step);
  EXPECT_EQ(told, (std::vector<int64_t>{1000, 2000, 6000, 22000}));
}

// What a probe finds is not gone in the steps without one.
TEST(Alarms, ALeakOfTheProbeIsToldAgainAtGrowingDistancesToo) {
  const auto leaks_until = [](int64_t end) {
    return [end](StepMetrics& m) {
      monitored(m, [&](Monitors& o) {
        o.leak.reset();
        if (m.step % 340 == 0) o.leak = m.step <= end || m.step == 20400 ? 1e-3 : 0;
      });
    };
  };
  EXPECT_EQ(told_in(watched(), 6000, leaks_until(100000)), (std::vector<int64_t>{340, 1360, 5440}));
  EXPECT_EQ(told_in(watched(), 20400, leaks_until(1000)), (std::vector<int64_t>{340, 20400})) << "after many probes without it is new";
}

// Losses of sources were kept as they are, and for 24 measurements.
TEST(Alarms, MemoriesOfAnEarlierVersionAreGoneOnFrom) {
  AlarmState state;
  {
    Alarms alarms(watched(), state);
    for (int64_t step = 1; step <= 300; ++step) alarms.add(healthy_step(step));
  }
  AlarmMemory& memory = state.memories.at("repetition");
  for (const char* name : {"web", "code", "books"}) {
    std::vector<double>& steps = memory.at(std::string("steps of ") + name);
    steps.erase(steps.begin(), steps.end() - 24);
    memory.erase(std::string("log loss of ") + name);
    memory[std::string("loss of ") + name].assign(24, 3.0);
  }
  AlarmState loaded = AlarmState::parse(state.save());
  Alarms alarms(watched(), loaded);
  for (int64_t step = 301; step <= 1500; ++step)
    for (const Alarm& alarm : alarms.add(healthy_step(step))) ADD_FAILURE() << alarm.evidence;
  EXPECT_EQ(loaded.memories.at("repetition").at("steps of web").size(), loaded.memories.at("repetition").at("log loss of web").size());
}

TEST(Alarms, ARunInPartsRaisesWhatTheUninterruptedOneDoes) {
  const Change grows = [](StepMetrics& m) {
    m.grad_norm *= std::exp(0.01 * static_cast<double>(m.step - 400)), m.loss = 2.7 + 0.01 * alarm_noise(m.step, 9);
  };
  AlarmState whole, parts;
  std::vector<int64_t> once, twice;
  Alarms straight(watched(), whole);
  for (int64_t step = 1; step <= 1500; ++step) {
    StepMetrics m = healthy_step(step);
    if (step >= 400) grows(m);
    for (const Alarm& alarm : straight.add(m)) once.push_back(alarm.step);
    if (step % 250 == 1) parts = AlarmState::parse(parts.save());
    Config moved = watched();  // to another layout, with more to do
    moved.parallel.dp = 1 + step % 3;
    moved.loss.on_alarm = "stop";
    for (const Alarm& alarm : Alarms(moved, parts).add(m)) twice.push_back(alarm.step);
  }
  EXPECT_FALSE(once.empty());
  EXPECT_EQ(once, twice);
  parts.setup = whole.setup;
  EXPECT_EQ(AlarmState::parse(whole.save()), whole);
  EXPECT_LT(whole.save().size(), 20000u);
}

TEST(Alarms, MemoriesBeginAnewWithAnotherConfig) {
  AlarmState state;
  Config config = watched();
  Alarms first(config, state);
  for (int64_t step = 1; step <= 300; ++step) first.add(healthy_step(step));
  EXPECT_FALSE(state.memories.empty());
  Config same = config;  // but for what no number of a step depends on
  same.data.cache_dir = "elsewhere", same.data.validate_every = 50, same.data.workers = 3, same.train.micro_batch = 4;
  const Alarms again(same, state);
  EXPECT_FALSE(state.memories.empty());
  config.train.global_batch *= 2;
  Alarms other(config, state);
  EXPECT_TRUE(state.memories.empty());
  EXPECT_THROW(AlarmState::parse("{\"setup\": 3}"), Error);
}

}  // namespace
}  // namespace hlat
