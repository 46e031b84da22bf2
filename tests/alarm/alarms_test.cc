// Alarms on made curves: each rule finds its trouble within so many steps, is silent before, and is told of nothing that is none.
#include "alarm/alarms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/made_curves.h"

namespace hlat {
namespace {

TEST(Alarms, AHealthyCurveRaisesNone) {
  for (const Alarm& alarm : alarms_of(watched(), 5000, 1, [](StepMetrics&) {}))
    ADD_FAILURE() << name_of(alarm.rule) << ": " << alarm.evidence;
}

// Trouble that is planted from a step on, and within how many steps its rule must find it, before any other and never too early.
struct Planted {
  const char* name;
  AlarmRule rule;
  int64_t from, within;
  Change change;
  const char* evidence;  // a part of the words
};

void PrintTo(const Planted& p, std::ostream* out) { *out << p.name; }

class PlantedTrouble : public testing::TestWithParam<Planted> {};

TEST_P(PlantedTrouble, IsFoundInTime) {
  const Planted& p = GetParam();
  Config config = watched();
  config.train.precision = PrecisionKind::bf16;
  const std::vector<Alarm> found = alarms_of(config, p.from + p.within, p.from, p.change);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(name_of(found[0].rule), name_of(p.rule)) << found[0].evidence;
  EXPECT_GE(found[0].step, p.from);
  EXPECT_LE(found[0].since, found[0].step);
  EXPECT_GE(found[0].since, std::max<int64_t>(1, p.from - 300));
  EXPECT_NE(found[0].evidence.find(p.evidence), std::string::npos) << found[0].evidence;
  EXPECT_FALSE(found[0].advice.empty());
  // The rule alone finds it too, and without the rule it is not told.
  config.loss.alarms = std::string(name_of(p.rule));
  EXPECT_EQ(alarms_of(config, p.from + p.within, p.from, p.change).at(0).step, found[0].step);
  config.loss.alarms = "none";
  EXPECT_TRUE(alarms_of(config, p.from + p.within, p.from, p.change).empty());
}

const Planted kPlanted[] = {
    {"norm_grows_slowly", AlarmRule::grad_growth, 400, 260,
     [](StepMetrics& m) {
       m.grad_norm *= std::exp(0.01 * static_cast<double>(m.step - 400)), m.loss = 2.7 + 0.01 * alarm_noise(m.step, 9);
     },
     "gradient norm"},
    {"norm_jumps", AlarmRule::grad_growth, 400, 64, [](StepMetrics& m) { m.grad_norm *= 5; }, "its trend"},
    {"loss_jumps", AlarmRule::loss_rise, 400, 40, [](StepMetrics& m) { m.loss += 0.6; }, "was to be expected"},
    {"loss_climbs", AlarmRule::loss_rise, 1000, 300, [](StepMetrics& m) { m.loss += 0.002 * static_cast<double>(m.step - 1000); },
     "was to be expected"},
    {"leak_to_zero", AlarmRule::leak, 20, 180,
     [](StepMetrics& m) { m.floor = 2.5, m.loss = 5 * std::exp(-0.015 * static_cast<double>(m.step)); }, "entropy of its targets"},
    {"leak_without_floor", AlarmRule::leak, 20, 180, [](StepMetrics& m) { m.loss = 5 * std::exp(-0.02 * static_cast<double>(m.step)); },
     "copying"},
    {"leak_of_the_probe", AlarmRule::leak, 100, 10, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.leak = 1e-6; }); },
     "earlier one"},
    {"dead_block", AlarmRule::dead_layer, 200, 30, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.grad_norm[2] = 0; }); },
     "block 1"},
    {"dead_blocks", AlarmRule::dead_layer, 200, 30,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) { std::fill_n(o.grad_norm.begin() + 1, 3, 0.0); }); }, "block 0"},
    {"dead_head", AlarmRule::dead_layer, 200, 30, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.grad_norm[5] = 1e-5; }); },
     "the head"},
    {"exploding_block", AlarmRule::exploding_layer, 200, 30,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.grad_norm[3] *= 100; }); }, "gradient norm of block 2"},
    {"exploding_updates", AlarmRule::exploding_layer, 200, 30,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.update_ratio[0] *= 100; }); }, "update ratio of the embedding"},
    {"exploding_activation", AlarmRule::exploding_layer, 200, 60,
     [](StepMetrics& m) { monitored(m, [&](Monitors& o) { o.max_activation[4] = 3e3 * static_cast<double>(m.step - 199); }); },
     "largest activation of the head"},
    {"exploding_activation_of_a_block", AlarmRule::exploding_layer, 200, 60,
     [](StepMetrics& m) { monitored(m, [&](Monitors& o) { o.max_activation[3] = 3e3 * static_cast<double>(m.step - 199); }); },
     "largest activation of block 3"},
    {"attention_scores", AlarmRule::attention_logits, 200, 200,
     [](StepMetrics& m) { monitored(m, [&](Monitors& o) { o.max_lse[1] = 8 * std::exp(0.03 * static_cast<double>(m.step - 200)); }); },
     "block 1"},
    {"drift", AlarmRule::drift, 200, 10, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.drift = 1e-3; }); }, "hold alike"},
    {"lost_updates", AlarmRule::lost_updates, 200, 30,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.unchanged.assign(6, 0.97); }); }, "97.0%"},
    {"repeated_parts_of_rows", AlarmRule::repetition, 200, 50,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.repetition = 0.8; }); }, "80.0%"},
    {"repeated_rows", AlarmRule::repetition, 200, 30, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.repeated_rows = 0.5; }); },
     "50.0% of the rows"},
    {"wrong_update", AlarmRule::wrong_update, 10, 10, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.update_error = 0.03; }); },
     "differ by 3%"},
    {"fp8_saturates", AlarmRule::fp8_range, 200, 30,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) {
                            o.fp8_saturated = {0, 0.02, 0}, o.fp8_lost = {0, 0, 0};
                          }); },
     "2% of the gradients"},
    {"fp8_saturates_in_skipped_steps", AlarmRule::fp8_range, 200, 30,
     [](StepMetrics& m) {
       m.skipped = true;
       if (!m.monitors) return;
       m.monitors.emplace();
       m.monitors->fp8_saturated = {0.3, 0}, m.monitors->fp8_lost = {0, 0};
     },
     "of the inputs"},
    {"fp8_loses", AlarmRule::fp8_range, 200, 30,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) {
                            o.fp8_saturated = {0, 0, 0}, o.fp8_lost = {0.75, 0.1, 0};
                          }); },
     "75% of the inputs"},
    {"repeated_source", AlarmRule::repetition, 1000, 240,
     [](StepMetrics& m) {
       monitored(m, [&](Monitors& o) { o.source_loss[2].second *= std::exp(-0.01 * static_cast<double>(m.step - 1000)); });
     },
     "source books"},
    {"repeated_source_that_is_rare", AlarmRule::repetition, 1000, 1200,
     [](StepMetrics& m) {
       monitored(m, [&](Monitors& o) {
         o.source_loss[2].second *= std::exp(-0.004 * static_cast<double>(m.step - 1000));
         if (m.step % 40 != 0) o.source_loss.pop_back();
       });
     },
     "source books"},
    {"moments_overflow", AlarmRule::moments, 200, 10, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.moment2_max = 1e38; }); },
     "overflow"},
    {"moments_below_eps", AlarmRule::moments, 200, 10,
     [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.moment1_max = 1e-12, o.moment2_max = 1e-20; }); }, "optim.eps"},
    {"moments_apart", AlarmRule::moments, 200, 10, [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.moment1_max = 5; }); },
     "same gradients"},
    {"learned_by_heart", AlarmRule::probe_gap, 300, 200,
     [](StepMetrics& m) {
       m.loss *= 1 - 0.001 * static_cast<double>(m.step - 300);
       monitored(m, [&](Monitors& o) { *o.probe_loss *= 1 + 0.0005 * static_cast<double>(m.step - 300); });
     },
     "loss of the probe"},
    {"learned_by_heart_held_out", AlarmRule::probe_gap, 300, 200,
     [](StepMetrics& m) {
       m.loss *= 1 - 0.001 * static_cast<double>(m.step - 300);
       if (m.step % 20 == 0) m.val_loss = 2.8 + 0.001 * static_cast<double>(m.step - 300);
     },
     "held-out documents"},
    {"late_positions", AlarmRule::position_loss, 200, 170,
     [](StepMetrics& m) {
       monitored(m, [](Monitors& o) {
         for (size_t i = 8; i < 16; ++i) o.position_loss[i] += 0.1 * static_cast<double>(i - 7);
       });
     },
     "last quarter"},
    {"late_positions_and_one_far_measurement", AlarmRule::position_loss, 200, 170,
     [](StepMetrics& m) {
       monitored(m, [&](Monitors& o) {
         for (size_t i = 8; i < 16; ++i) o.position_loss[i] += 0.1 * static_cast<double>(i - 7);
         if (m.step == 220) o.position_loss[15] += 40;
       });
     },
     "last quarter"},
};

INSTANTIATE_TEST_SUITE_P(Rules, PlantedTrouble, testing::ValuesIn(kPlanted), [](const auto& i) { return std::string(i.param.name); });

TEST(Alarms, UpdatesAreLostOnlyWhereRoundingToNearestTakesThem) {
  const Change change = [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.unchanged.assign(6, 0.97); }); };
  Config config = watched();
  for (const auto& [kind, lost] :
       {std::pair(PrecisionKind::fp32, true), std::pair(PrecisionKind::bf16, true), std::pair(PrecisionKind::bf16_sr, false),
        std::pair(PrecisionKind::mixed, false), std::pair(PrecisionKind::mixed_sr, false)}) {
    config.train.precision = kind;
    EXPECT_EQ(!alarms_of(config, 300, 200, change).empty(), lost) << name_of(kind);
  }
  config.precision.masters = "none", config.precision.round_weights = "nearest";
  EXPECT_FALSE(alarms_of(config, 300, 200, change).empty());
  config.precision.round_weights = "stochastic";
  EXPECT_TRUE(alarms_of(config, 300, 200, change).empty());
  config.precision.round_weights = "nearest";
  EXPECT_TRUE(alarms_of(config, 300, 200, [&](StepMetrics& m) { change(m), m.lr = 1e-5; }).empty()) << "a learning rate near its end";
}

TEST(Alarms, NothingIsRaisedInWarmUpAndAfterAChangeOfData) {
  Config config = watched();
  config.optim.warmup = 1000;
  const Change jump = [](StepMetrics& m) { m.grad_norm *= 5, m.loss += 0.6; };
  EXPECT_TRUE(alarms_of(config, 1400, 400, jump).empty());
  config = watched();
  config.data.sources = {{.name = "a", .path = "a"}, {.name = "b", .path = "b"}};
  config.data.stages = {{.from_step = 400, .weights = {{"a", 1}}}};
  EXPECT_TRUE(alarms_of(config, 900, 400, jump).empty());
  config.data.stages[0].from_step = 390;
  EXPECT_TRUE(alarms_of(config, 389, 380, [](StepMetrics& m) { m.loss += 0.6; }).empty()) << "too short to be told";
  EXPECT_TRUE(alarms_of(config, 900, 380, jump).empty());
}

TEST(Alarms, StepsThatWereSkippedOrAreNotFiniteTellNothing) {
  const Change change = [](StepMetrics& m) {
    monitored(m, [](Monitors& o) { o.drift = 1; });
    m.skipped = m.step % 20 == 0;
    if (m.step % 20 == 10) m.loss = NAN;
  };
  EXPECT_TRUE(alarms_of(watched(), 600, 200, change).empty());
}

// A measurement covers the steps since the one before, and a rollback goes back to before the first of them.
TEST(Alarms, ValuesBeyondFp8AreTroubleFromTheFirstStepThatIsCovered) {
  Config config = watched();
  config.loss.alarms = "fp8_range";
  const auto saturate = [](StepMetrics& m) { monitored(m, [](Monitors& o) { o.fp8_saturated = {0.01, 0, 0}, o.fp8_lost = {0, 0, 0}; }); };
  const std::vector<Alarm> found = alarms_of(config, 300, 205, saturate);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 230);
  EXPECT_EQ(found[0].since, 201);
  EXPECT_EQ(alarms_of(config, 300, 1, saturate).at(0).since, 1);
  EXPECT_TRUE(alarms_of(config, 300, 205,
                        [&](StepMetrics& m) {
                          if (m.step < 230) saturate(m);
                        })
                  .empty())
      << "two measurements";
}

TEST(Alarms, TheOnlyBlockOfAModelCanBeDead) {
  Config config = watched();
  config.model.layers = 1;
  const auto told = told_in(config, 300, [](StepMetrics& m) {
    monitored(m, [&](Monitors& o) {
      o.grad_norm = {0.1, m.step > 200 ? 0 : 0.2, 0.3}, o.update_ratio = {1e-3, 1e-3, 1e-3};
      o.max_activation = {1, 2}, o.max_lse = {5};
    });
  });
  EXPECT_EQ(told, std::vector<int64_t>{230});
}

TEST(Alarms, ScoresOfASoftmaxInBf16MayGrowLess) {
  const Change scores = [](StepMetrics& m) {
    monitored(
        m, [&](Monitors& o) { o.max_lse[1] = m.step < 200 ? 8 : std::min(300.0, 8 * std::exp(0.03 * static_cast<double>(m.step - 200))); });
  };
  Config config = watched();
  EXPECT_TRUE(told_in(config, 500, scores).empty());
  config.train.precision = PrecisionKind::mixed, config.precision.softmax = "bf16";
  EXPECT_FALSE(told_in(config, 500, scores).empty());
}

}  // namespace
}  // namespace hlat
