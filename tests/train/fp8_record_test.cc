// The scales of FP8 in a checkpoint's record: what a resume has, and what begins anew.
#include "train/fp8_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ops/download.h"
#include "support/precision_rows.h"
#include "support/real_run.h"

namespace hlat {
namespace {

Config fp8_config(const char* grads = "") {
  Config c = tiny_config();
  c.train.precision = PrecisionKind::fp8;
  c.precision.fp8_grads = grads;
  fit_fp8(c);
  return c;
}

CheckpointIndex index_of(RealRun& run, int version = kFp8Version) {
  CheckpointIndex index;
  index.step = 3;
  index.records.push_back({"fp8", version, join_fp8({own_fp8(run.executor())})});
  return index;
}

bool restored(const CheckpointIndex& index, RealRun& run) {
  const std::optional<Fp8Scales> scales = saved_fp8(index, run.executor().config());
  restore_fp8(scales, run.executor());
  return scales.has_value();
}

std::vector<double> scales(RealRun& run, Fp8Role role) {
  const Fp8State& s = run.executor().params().fp8_state();
  std::vector<double> out;
  for (const ParamId id : s.params()) out.push_back(static_cast<double>(download_f32(run.device(), s.scale(id, role))[0]));
  return out;
}

class Trained {
 public:
  explicit Trained(const char* grads = "") : run_(fp8_config(grads)) {
    for (int64_t step = 1; step <= 3; ++step) run_.step(step);
  }
  RealRun& run() { return run_; }

 private:
  RealRun run_;
};

TEST(Fp8Record, RestoresScalesAndHistory) {
  Trained from;
  RealRun to(fp8_config());
  ASSERT_NE(scales(to, Fp8Role::input), scales(from.run(), Fp8Role::input));
  EXPECT_TRUE(restored(index_of(from.run()), to));
  for (const Fp8Role role : {Fp8Role::input, Fp8Role::gradient, Fp8Role::weight})
    EXPECT_EQ(scales(to, role), scales(from.run(), role)) << name_of(role);
  EXPECT_EQ(own_fp8(to.executor()), own_fp8(from.run().executor()));
}

// Half of E5M2's range is 2^7 times half of E4M3's.
TEST(Fp8Record, ScalesOfGradientsFollowTheirType) {
  Trained wide("e5m2"), narrow("e4m3");
  for (const auto& [from, to, factor] : {std::tuple{&wide, "e4m3", 0x1p-7}, std::tuple{&narrow, "e5m2", 0x1p7}}) {
    RealRun other(fp8_config(to));
    EXPECT_TRUE(restored(index_of(from->run()), other));
    const std::vector<double> before = scales(from->run(), Fp8Role::gradient), after = scales(other, Fp8Role::gradient);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], factor * before[i]);
    EXPECT_EQ(scales(other, Fp8Role::input), scales(from->run(), Fp8Role::input));
  }
}

TEST(Fp8Record, WithoutAllLayersScalesBeginAnew) {
  Trained from;
  RealRun fresh(fp8_config()), to(fp8_config());
  EXPECT_FALSE(restored(CheckpointIndex{}, to));
  EXPECT_EQ(scales(to, Fp8Role::gradient), scales(fresh, Fp8Role::gradient));
  CheckpointIndex part = index_of(from.run());
  nlohmann::json json = nlohmann::json::parse(part.records[0].json);
  json.erase(json.begin().key());
  part.records[0].json = json.dump();
  EXPECT_FALSE(restored(part, to));
  EXPECT_EQ(scales(to, Fp8Role::input), scales(fresh, Fp8Role::input));
}

// Until a step has measured them they are not saved: a resume then measures them too.
TEST(Fp8Record, ScalesThatAreYetToBeMeasuredAreNotSaved) {
  RealRun to(fp8_config());
  EXPECT_NE(own_fp8(to.executor()), "") << "a new run's are declared";
  restored(CheckpointIndex{}, to);
  EXPECT_EQ(own_fp8(to.executor()), "");
  RandomRows rows(fp8_config());
  to.train().pass_over(&rows);
  EXPECT_EQ(own_fp8(to.executor()), "");
  EXPECT_TRUE(to.step(1).calibrated);
  EXPECT_NE(own_fp8(to.executor()), "");
  EXPECT_FALSE(to.step(2).calibrated);
}

TEST(Fp8Record, WhatCannotBeReadIsRefused) {
  Trained from;
  CheckpointIndex newer = index_of(from.run(), kFp8Version + 1), broken = index_of(from.run());
  EXPECT_THROW(saved_fp8(newer, fp8_config()), UsageError);
  nlohmann::json json = nlohmann::json::parse(broken.records[0].json);
  json.begin().value()["input"]["exponent"] = "much";
  broken.records[0].json = json.dump();
  EXPECT_THROW(saved_fp8(broken, fp8_config()), DamagedCheckpoint);
  EXPECT_FALSE(saved_fp8(broken, tiny_config())) << "without FP8 nobody looks";
}

}  // namespace
}  // namespace hlat
