// What the plan says of checkpoints: exact bytes, and the staging memory of the host.
#include "plan/save_plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/report.h"
#include "support/layout_run.h"

namespace hlat {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
const Fit kAnyHost{.device = "", .available = 1e15};

TEST(SavePlan, BytesAreThoseThatAllRanksSave) {
  for (const Layout& layout : {Layout{}, Layout{.tp = 4, .precision = PrecisionKind::mixed}, Layout{.pp = 2, .tied = true},
                               Layout{.tp = 2, .pp = 2, .dp = 2, .zero1 = true, .kv = 1, .precision = PrecisionKind::bf16_sr},
                               Layout{.tp = 8, .kv = 2}, Layout{.dp = 4}}) {
    const Config config = layout.config();
    uint64_t sum = 0;
    for (int rank = 0; rank < mesh_shape(config.parallel).ranks(); ++rank) sum += dry_run(config, {}, rank).saved_bytes;
    EXPECT_EQ(save_plan(config, dry_run(config, {}), kAnyHost).bytes, sum) << layout.name();
  }
}

TEST(SavePlan, SaysWhatIsKeptAndWrittenOverTime) {
  Config config = Layout{}.config();
  config.checkpoint.keep = 2;
  config.checkpoint.every = 250;
  const RankPlan plan = dry_run(config, {});
  const SavePlan steps = save_plan(config, plan, kAnyHost);
  EXPECT_EQ(steps.kept_bytes, 3 * steps.bytes);
  EXPECT_EQ(steps.bytes_per_1000_steps, 4.0 * static_cast<double>(steps.bytes));
  EXPECT_FALSE(steps.bytes_per_day);
  config.checkpoint.minutes = 30;
  config.checkpoint.weights_every_tokens = 1000;
  const SavePlan time = save_plan(config, plan, kAnyHost);
  EXPECT_EQ(time.bytes_per_day, 48.0 * static_cast<double>(time.bytes));
  EXPECT_EQ(time.weights_bytes, static_cast<uint64_t>(plan.parameters) * 2);
  const nlohmann::ordered_json j = plan_json(config, {plan}, kAnyHost, {});
  EXPECT_EQ(j["checkpoint"]["bytes_per_save"], time.bytes);
  EXPECT_EQ(j["checkpoint"]["kept_bytes"], time.kept_bytes);
  EXPECT_EQ(j["checkpoint"]["bytes_per_day"], *time.bytes_per_day);
  EXPECT_EQ(j["checkpoint"]["weights_bytes"], time.weights_bytes);
  EXPECT_EQ(j["staging_bytes"], kAnyHost.lines(config, plan).staging);
  const std::string table = plan_table(config, {plan});
  EXPECT_NE(table.find("checkpoints: "), std::string::npos) << table;
  EXPECT_NE(table.find(" per day; at most "), std::string::npos) << table;
  EXPECT_NE(table.find(", checkpoint staging "), std::string::npos) << table;
}

TEST(SavePlan, NothingIsReservedWhereNothingIsSaved) {
  Config config = Layout{}.config();
  const RankPlan plan = dry_run(config, {});
  const size_t with = host_lines(config, plan).total();
  EXPECT_GE(host_lines(config, plan).staging, plan.saved_bytes);
  config.checkpoint.every = 0;
  config.checkpoint.at_end = false;
  EXPECT_EQ(host_lines(config, plan).staging, 0u);
  EXPECT_LT(host_lines(config, plan).total(), with);
  EXPECT_EQ(plan_table(config, {plan}).find("checkpoint"), std::string::npos);
  EXPECT_TRUE(plan_json(config, {plan}, kAnyHost, {})["checkpoint"].is_null());
  Config evaluated = Layout{}.config();
  const RankPlan weights = dry_run(evaluated, {.use = ParamUse::weights});
  EXPECT_EQ(host_lines(evaluated, weights).staging, 0u) << "an evaluation saves nothing";
}

TEST(SavePlan, StagingShrinksWithTheHostAndThePlanSaysThatUpdatesWait) {
  const Config config = Layout{}.config();
  RankPlan plan = dry_run(config, {});
  plan.saved_bytes = size_t{4} << 30;
  const size_t others = host_lines(config, plan).total() - host_lines(config, plan).staging;
  const Fit ample{.device = "", .available = 1e15, .host_available = static_cast<double>(others) + 8 * kGib};
  EXPECT_EQ(ample.lines(config, plan).staging, size_t{4} << 30);
  EXPECT_EQ(plan_table(config, {plan}, ample).find("the update waits"), std::string::npos);
  const Fit small{.device = "", .available = 1e15, .host_available = static_cast<double>(others) + 2 * kGib};
  EXPECT_EQ(small.lines(config, plan).staging, size_t{1} << 30);
  EXPECT_TRUE(small.fits(config, plan));
  EXPECT_NE(plan_table(config, {plan}, small).find("the update waits until 3.0 GiB of it are written, 3.2s where the disk takes 1 GB/s"),
            std::string::npos)
      << plan_table(config, {plan}, small);
  EXPECT_EQ(plan_json(config, {plan}, small, {})["checkpoint"]["update_waits_for_bytes"], size_t{3} << 30);
  // Where the device is the host the regions come first.
  Fit on_host{.device = "", .available = static_cast<double>(plan.memory.total() + others) + 2 * kGib, .on_host = true};
  EXPECT_EQ(on_host.lines(config, plan).staging, size_t{1} << 30);
  on_host.available = static_cast<double>(plan.memory.total() + others);
  EXPECT_EQ(on_host.lines(config, plan).staging, size_t{64} << 20) << "the least";
  EXPECT_FALSE(on_host.fits(config, plan));
  Config fixed = config;
  fixed.checkpoint.staging_mb = 256;
  EXPECT_EQ(small.lines(fixed, plan).staging, size_t{256} << 20);
}

}  // namespace
}  // namespace hlat
