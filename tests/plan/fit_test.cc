// Fit, micro-batch and remedies, all by dry runs of one config.
#include "plan/fit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/load.h"
#include "config/resolve.h"
#include "config/validate.h"
#include "plan/micro_batch.h"
#include "plan/report.h"
#include "support/paths.h"

namespace hlat {
namespace {

Config config_of(std::vector<std::string> words, int64_t ranks = 1) {
  words.insert(words.end(), {"train.global_batch=16", "train.seq_len=64", "data.embedded=true"});
  return with_ranks(load_config(test::source_path("configs/nano.yaml"), words).config, ranks, RanksAre::planned);
}

Fit room_for(double bytes) { return {.device = "a device", .available = bytes}; }
double total(const Config& c) { return static_cast<double>(fullest(plan_stages(c, {})).memory.total()); }

TEST(Fit, CountsTheHostsLinesWhereTheDeviceIsTheHost) {
  const Config c = config_of({});
  const RankPlan plan = dry_run(c, {});
  const HostLines lines = host_lines(c, plan);
  EXPECT_GT(lines.process, size_t{64} << 20);
  EXPECT_GT(lines.loader, 0u);
  const double regions = static_cast<double>(plan.memory.total()), host = static_cast<double>(lines.total());
  EXPECT_FALSE((Fit{.device = "", .available = regions + host - 1, .on_host = true}.fits(c, plan)));
  EXPECT_TRUE((Fit{.device = "", .available = regions + host, .on_host = true}.fits(c, plan)));
  const Fit started{.device = "", .available = regions + host - 1000, .on_host = true, .resident = 1000};
  EXPECT_TRUE(started.fits(c, plan)) << "what the process has already is not to come";
  EXPECT_TRUE(room_for(regions).fits(c, plan)) << "a device of its own";
  const Fit small_host{.device = "", .available = regions, .host_available = host - 1};
  EXPECT_FALSE(small_host.fits(c, plan));
  EXPECT_NE(fit_text(c, {plan}, small_host, {}).find("does not fit in the host's memory"), std::string::npos);
}

TEST(MicroBatchAuto, IsTheLargestDivisorThatFits) {
  const Config given = config_of({"train.micro_batch=auto"});
  EXPECT_TRUE(validate(given).empty());
  for (const int64_t n : {1, 2, 4, 8, 16}) {
    Config c = given;
    c.train.micro_batch = n;
    EXPECT_EQ(largest_micro_batch(given, {}, room_for(total(c) / kChosenShare + 1)), n);
    if (n > 1) {
      EXPECT_EQ(largest_micro_batch(given, {}, room_for(total(c) / kChosenShare - 1)), n / 2);
    }
  }
  EXPECT_EQ(largest_micro_batch(given, {}, room_for(0)), 1) << "the fit check then says what is missing";
}

TEST(MicroBatchAuto, KeepsTheOtherRules) {
  EXPECT_EQ(largest_micro_batch(config_of({"train.micro_batch=auto"}, 4), {}, room_for(1e15)), 4) << "a replica's share of the batch";
  EXPECT_EQ(largest_micro_batch(config_of({"train.micro_batch=auto", "data.validate_rows=6"}), {}, room_for(1e15)), 2);
  EXPECT_EQ(largest_micro_batch(config_of({"train.micro_batch=auto", "parallel.pp=4"}, 4), {}, room_for(1e15)), 4)
      << "a micro-batch for every stage";
}

TEST(Remedies, NameLayoutsThatFitAndNothingThatDoesNotHelp) {
  const Config c = config_of({"train.precision=fp32", "train.recompute=none"});
  const RankPlan plan = dry_run(c, {});
  Config two = c;
  two.parallel.tp = 2;
  const Fit fit = room_for(total(two));
  const std::vector<Remedy> list = remedies(c, plan, fit, {});
  bool tp = false;
  for (const Remedy& r : list) {
    EXPECT_LT(r.bytes, plan.memory.total()) << r.change;
    EXPECT_EQ(r.fits, static_cast<double>(r.bytes) <= fit.available) << r.change;
    if (r.change == "parallel.tp=2") tp = r.fits && r.ranks == 2;
  }
  EXPECT_TRUE(tp);
  const auto j = plan_json(c, {plan}, fit, {});
  ASSERT_EQ(j["remedies"].size(), list.size());
  EXPECT_EQ(j["remedies"][0]["change"], list[0].change);
  EXPECT_TRUE(plan_json(c, {plan}, room_for(1e15), {})["remedies"].empty());
}

TEST(Remedies, CombineKeysAndRanksWhereNeitherIsEnough) {
  const Config c = config_of({"train.precision=fp32", "train.recompute=none", "train.micro_batch=16"});
  Config much = c;
  much.train.micro_batch = 1;
  much.train.recompute = {.kind = RecomputeKind::full, .every = 0};
  much.train.precision = PrecisionKind::bf16_sr;
  much.train.loss_chunk = std::min<int64_t>(256, c.train.loss_chunk);
  much.parallel.tp = 4;
  const std::vector<Remedy> list = remedies(c, dry_run(c, {}), room_for(total(much)), {});
  ASSERT_FALSE(list.empty());
  EXPECT_TRUE(
      std::any_of(list.begin(), list.end(), [](const Remedy& r) { return r.fits && r.change.starts_with("all of these and parallel."); }));
}

// State of bf16_sr is smaller than that of fp8_sr, which keeps less for the backward: the smaller one is named last, and nothing after it.
TEST(Remedies, OfFp8AreThePoliciesThatTakeLess) {
  const auto precisions = [](const Config& c) {
    const RankPlan plan = dry_run(c, {});
    std::vector<std::string> named;
    size_t bytes = plan.memory.total();
    for (const Remedy& r : remedies(c, plan, room_for(1), {})) {
      if (!r.change.starts_with("train.precision=")) continue;
      EXPECT_LT(r.bytes, bytes) << r.change;
      named.push_back(r.change.substr(r.change.find('=') + 1));
      bytes = r.bytes;
    }
    return named;
  };
  using Names = std::vector<std::string>;
  Config c;
  c.model = {.preset = {}, .layers = 4, .hidden = 256, .heads = 4, .kv_heads = 4, .ffn = 512, .vocab = 256};
  c.parallel.dp = 1;
  c.train.precision = PrecisionKind::fp8;
  c.train.global_batch = 1024;
  c.train.seq_len = 16;
  c.train.micro_batch = 1;
  EXPECT_EQ(precisions(c), (Names{"fp8_sr", "bf16_sr"}));
  c.train.micro_batch = 1024;
  EXPECT_EQ(precisions(c), Names{"fp8_sr"});
  c.train.precision = PrecisionKind::fp8_sr;
  EXPECT_EQ(precisions(c), Names{});
  c.train.micro_batch = 1;
  EXPECT_EQ(precisions(c), Names{"bf16_sr"});
  c.train.precision = PrecisionKind::mixed;
  EXPECT_EQ(precisions(c), Names{"bf16_sr"});
}

TEST(Remedies, ThatExcludeEachOtherAreNotJoined) {
  Config c;
  c.model = {.preset = {}, .layers = 4, .hidden = 256, .heads = 4, .kv_heads = 4, .ffn = 512, .vocab = 256};
  c.parallel.dp = 1;
  c.train.precision = PrecisionKind::fp8;
  c.train.seq_len = 16;
  c.train.micro_batch = 1;
  c.train.recompute = {.kind = RecomputeKind::full, .every = 0};
  c.train.loss_chunk = 256;
  std::vector<std::string> named;
  for (const Remedy& r : remedies(c, dry_run(c, {}), room_for(1), {})) named.push_back(r.change);
  EXPECT_EQ(std::ranges::count(named, "train.precision=fp8_sr"), 1);
  EXPECT_EQ(std::ranges::count(named, "train.precision=bf16_sr"), 1);
  for (const std::string& change : named) EXPECT_FALSE(change.starts_with("all of these,")) << change;
}

TEST(Plan, SaysNothingWasStartedWhereNothingWas) {
  try {
    config_of({"parallel.tp=2"}, 3);
    FAIL();
  } catch (const UsageError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find("start"), std::string::npos) << text;
    EXPECT_NE(text.find("the plan is for 3"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace hlat
