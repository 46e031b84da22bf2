// Replica health: planted faults in weights, gradients and messages are found and named; sound runs of every precision
// pass; steps without a check send nothing more.
#include "health/health.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "support/faulty_comm.h"
#include "support/layout_run.h"

namespace hlat {
namespace {

Config checked(const Layout& layout, int64_t every) {
  Config c = layout.config();
  c.parallel.health_every = every;
  return c;
}

std::string error_of(const Config& config, int64_t steps, const AfterStep& after = {}, const WrapComm& wrap = {}) {
  try {
    run_layout(config, steps, after, wrap);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

int rank_of(const Mesh& mesh) { return rank_of(mesh.coord(), mesh.shape()); }

// After step 1 the last element of a tensor is one ulp larger on one rank.
AfterStep drift(const std::string& name, int rank) {
  return [=](TrainStep& train, int64_t step) {
    if (step != 1 || rank_of(train.executor().mesh()) != rank) return;
    const ParamStore& params = train.executor().params();
    for (ParamId id = 0; id < params.size(); ++id)
      if (params.spec(id).name == name) {
        float& w = params.weight(id).as<float>()[params.weight(id).numel() - 1];
        w = std::nextafter(w, 2 * w);
        return;
      }
    ADD_FAILURE() << name << " is not on rank " << rank;
  };
}

TEST(HealthDrift, OfAnyWeightOverDp) {
  EXPECT_EQ(error_of(checked({.dp = 4}, 1), 3, drift("layers.1.mlp.down", 2)),
            "step 2: weights of layers.1.mlp.down differ between dp ranks: ranks 0, 1, 3 agree, rank 2 differs");
  EXPECT_EQ(error_of(checked({.tp = 2, .dp = 2}, 1), 3, drift("layers.2.mlp.gate_up", 3)),
            "step 2: weights of layers.2.mlp.gate_up differ between dp ranks: ranks 1, 3 differ");
}

// Scales are no part of any weight: with ZeRO-1 a wrong one makes codes that all ranks have alike.
TEST(HealthDrift, OfScalesOfFp8) {
  const auto with_scale = [](int rank) {
    return [=](TrainStep& train, int64_t step) {
      if (step != 1 || rank_of(train.executor().mesh()) != rank) return;
      const Fp8State& s = train.executor().params().fp8_state();
      s.history.as<float>()[3] += 1;
    };
  };
  Layout over_dp{.dp = 4, .zero1 = true}, over_tp{.tp = 2};
  over_dp.precision = over_tp.precision = PrecisionKind::fp8;
  EXPECT_EQ(error_of(checked(over_dp, 1), 2), "no error");
  EXPECT_EQ(error_of(checked(over_dp, 1), 3, with_scale(1)),
            "step 2: scales of FP8 differ between dp ranks: ranks 0, 2, 3 agree, rank 1 differs");
  EXPECT_EQ(error_of(checked(over_tp, 1), 3, with_scale(1)), "step 2: scales of FP8 differ between tp ranks: ranks 0, 1 differ");
}

// In fp8_sr layers of FP8 have masters and the others do not: what is saved of the former is compared before it is.
TEST(HealthDrift, OfMastersThatOnlySomeWeightsHave) {
  Layout layout{.dp = 2};
  layout.precision = PrecisionKind::fp8_sr;
  const auto check_after = [](const char* damaged) {
    return [=](TrainStep& train, int64_t step) {
      if (step != 1) return;
      const ParamStore& params = train.executor().params();
      for (const UpdateUnit& u : params.units())
        if (params.spec(u.param).name == damaged && train.executor().mesh().coord().dp == 1) u.tensors.master.as<uint16_t>()[0] ^= 1u;
      train.check_state(step);
    };
  };
  EXPECT_EQ(error_of(checked(layout, 100), 1, check_after("")), "no error");
  EXPECT_EQ(error_of(checked(layout, 100), 1, check_after("layers.1.mlp.down")),
            "step 1: master weights of layers.1.mlp.down differ between dp ranks: ranks 0, 1 differ");
}

TEST(HealthDrift, IsFoundAtTheNextCheck) {
  EXPECT_EQ(error_of(checked({.dp = 2}, 3), 4, drift("layers.3.norm2", 0)),
            "step 3: weights of layers.3.norm2 differ between dp ranks: ranks 0, 1 differ");
  EXPECT_EQ(error_of(checked({.pp = 2}, 1), 3, drift("layers.3.norm2", 1)), "no error");  // it has no replica
}

TEST(HealthDrift, OfNormsOverTp) {
  EXPECT_EQ(error_of(checked({.tp = 2}, 1), 3, drift("layers.3.norm1", 1)),
            "step 2: weights of layers.3.norm1 differ between tp ranks: ranks 0, 1 differ");
  EXPECT_EQ(error_of(checked({.tp = 3, .sp = true}, 1), 3, drift("layers.3.norm1", 1)),
            "step 2: weights of layers.3.norm1 differ between tp ranks: ranks 0, 2 agree, rank 1 differs");
}

TEST(HealthDrift, OfSharedKvHeads) {
  EXPECT_EQ(error_of(checked({.tp = 4}, 1), 3, drift("layers.0.attention.qkv", 2)),
            "step 2: weights of layers.0.attention.qkv differ between kv ranks: ranks 2, 3 differ");
  EXPECT_EQ(error_of(checked({.tp = 8, .kv = 2}, 1), 3, drift("layers.0.attention.qkv", 7)),
            "step 2: weights of layers.0.attention.qkv differ between kv ranks: ranks 4, 5, 6 agree, rank 7 differs");
}

TEST(HealthDrift, OfATiedEmbedding) {
  EXPECT_EQ(error_of(checked({.pp = 3, .tied = true}, 1), 3, drift("embedding", 2)),
            "step 2: weights of embedding differ between ends ranks: ranks 0, 2 differ");
}

// Runs with the fault armed from step 2 on.
std::string error_with(const Config& config, Fault& fault) {
  return error_of(
      config, 3,
      [&](TrainStep& train, int64_t step) {
        if (step == 1 && rank_of(train.executor().mesh()) == fault.rank) fault.armed = true;
      },
      [&](std::unique_ptr<Comm> comm, int rank) -> std::unique_ptr<Comm> {
        if (comm->name() != fault.axis || comm->size() == 1) return comm;
        return std::make_unique<FaultyComm>(std::move(comm), fault, rank == fault.rank);
      });
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\n  in: " << text;
}

TEST(HealthFault, ThatDoesNotHappenIsNotSeen) {
  Fault fault{.axis = "dp", .rank = 9};
  EXPECT_EQ(error_with(checked({.dp = 4}, 1), fault), "no error");
  EXPECT_EQ(error_with(checked({.tp = 2, .dp = 2, .sp = true, .zero1 = true}, 1), fault), "no error");
}

// A term of a share goes wrong: the sum is the same on all ranks, and wrong.
TEST(HealthFault, InATermOfAnAllReduce) {
  Fault fault{.axis = "dp", .rank = 1};
  expect_parts(
      error_with(checked({.dp = 4}, 1), fault),
      {"step 2: gradients of ", " are summed wrongly over dp ranks 0, 1, 2, 3: the share of rank 1 ", "weights are those of step 1"});
}

// A finished share goes wrong on its way to one rank.
TEST(HealthFault, InTheResultOfAnAllReduce) {
  Fault fault{.axis = "dp", .rank = 1, .skip = 3};
  expect_parts(error_with(checked({.dp = 4}, 1), fault),
               {"step 2: gradients of ", " differ between dp ranks: ranks 0, 2, 3 agree, rank 1 differs", "weights are those of step 1"});
}

TEST(HealthFault, InAReduceScatter) {
  for (const int dp : {2, 4, 8}) {
    Fault fault{.axis = "dp", .kind = CommKind::reduce_scatter, .rank = 1};
    expect_parts(error_with(checked({.dp = dp, .zero1 = true}, 2), fault),
                 {"step 2: gradients of ", " are summed wrongly over dp ranks 0, 1", ": the share of rank 1 ", "those of step 1"});
  }
}

TEST(HealthFault, InTheGatheringOfWeights) {
  Fault fault{.axis = "dp", .kind = CommKind::all_gather, .rank = 2, .min_bytes = 4096};
  expect_parts(error_with(checked({.dp = 4, .zero1 = true}, 1), fault),
               {"step 2: weights of ", " differ between dp ranks: ranks 0, 1, 3 agree, rank 2 differs"});
}

TEST(HealthFault, InAPartialGradientOverTp) {
  Fault fault{.axis = "tp", .rank = 2};
  expect_parts(error_with(checked({.tp = 4, .sp = true}, 1), fault),
               {"step 2: gradients of ", "norm", " differ between tp ranks: ranks 0, 1, 3 agree, rank 2 differs", "those of step 1"});
}

TEST(HealthFault, InTheGradientOfSharedKvHeads) {
  Fault fault{.axis = "kv", .rank = 1};
  expect_parts(error_with(checked({.tp = 4}, 1), fault),
               {"step 2: gradients of layers.3.attention.qkv differ between kv ranks: ranks 0, 1 differ", "those of step 1"});
}

TEST(HealthFault, InTheGradientOfATiedEmbedding) {
  // The message with the terms of a share is the first one, the share itself the second.
  Fault fault{.axis = "ends", .rank = 0, .skip = 1};
  expect_parts(error_with(checked({.pp = 2, .zero1 = true, .tied = true}, 1), fault),
               {"step 2: gradients of embedding differ between ends ranks: ranks 0, 1 differ", "those of step 1"});
}

TEST(HealthFault, GoesUnseenWithoutChecks) {
  Fault fault{.axis = "dp", .kind = CommKind::reduce_scatter, .rank = 1};
  EXPECT_EQ(error_with(checked({.dp = 2, .zero1 = true}, 0), fault), "no error");
  EXPECT_FALSE(fault.armed) << "the fault did not happen";
}

class HealthClean : public ::testing::TestWithParam<PrecisionKind> {};

TEST_P(HealthClean, SoundRunsPass) {
  const std::vector<Layout> layouts = {
      {.tp = 2},
      {.tp = 3, .sp = true},
      {.tp = 8, .kv = 1},
      {.dp = 4},
      {.dp = 8, .zero1 = true},
      {.pp = 2, .tied = true},
      {.pp = 2, .chunks = 2},
      {.tp = 2, .dp = 2},
      {.tp = 4, .dp = 2, .sp = true, .zero1 = true},
      {.pp = 2, .dp = 4, .zero1 = true, .tied = true},
      {.tp = 2, .pp = 2, .dp = 2, .tied = true},
      {.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .chunks = 2, .tied = true},
  };
  for (const Layout& l : layouts) {
    Config c = checked(l, 1);
    c.train.precision = GetParam();
    EXPECT_NO_THROW(run_layout(c, 3)) << fmt::format("tp {} pp {} dp {} sp {} zero1 {}", l.tp, l.pp, l.dp, l.sp, l.zero1);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, HealthClean,
                         ::testing::Values(PrecisionKind::fp32, PrecisionKind::mixed, PrecisionKind::mixed_sr, PrecisionKind::bf16_sr,
                                           PrecisionKind::bf16),
                         [](const auto& row) { return std::string(name_of(row.param)); });

// bf16 gradients whose sums over dp are rounded at each addition, in another order for each group.
TEST(HealthLibrarySums, SoundRunsPass) {
  for (const Layout& l : {Layout{.dp = 8}, Layout{.dp = 8, .zero1 = true}, Layout{.tp = 2, .dp = 4, .sp = true, .zero1 = true},
                          Layout{.pp = 2, .dp = 4, .tied = true}})
    for (const PrecisionKind p : {PrecisionKind::bf16_sr, PrecisionKind::mixed}) {
      Config c = checked(l, 1);
      c.train.precision = p;
      EXPECT_NO_THROW(run_layout_with_library_sums(c, 3)) << l.name() << " " << name_of(p);
    }
}

struct Count {
  int64_t calls = 0;
  double bytes = 0;
  bool operator==(const Count&) const = default;
};

Count count_of(const std::vector<AxisTraffic>& axes) {
  Count n;
  for (const AxisTraffic& a : axes)
    for (const CommCost& c : a.traffic.kind) n.calls += c.calls, n.bytes += c.bytes;
  return n;
}

// What rank 0 sent in each step.
std::vector<Count> traffic_by_step(const Config& config, int64_t steps) {
  std::vector<Count> list;
  run_layout(config, steps, [&](TrainStep& train, int64_t) {
    if (rank_of(train.executor().mesh()) == 0) list.push_back(count_of(traffic_of(train.executor().mesh())));
    train.executor().mesh().reset_traffic();
  });
  return list;
}

TEST(Health, SendsNothingBetweenChecks) {
  const Layout layout{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .tied = true};
  const std::vector<Count> never = traffic_by_step(checked(layout, 0), 3), second = traffic_by_step(checked(layout, 2), 3);
  EXPECT_EQ(never[0], never[1]);
  EXPECT_EQ(second[0], never[0]);
  EXPECT_EQ(second[2], never[0]);
  // Gradients over tp, ends and the sums over dp; weights over tp, ends and dp; a known sum over tp, pp and dp and what came of it.
  EXPECT_EQ(second[1].calls, never[1].calls + 6 + 6);
  // The plan is that of a step without a check, whatever the interval.
  for (const int64_t every : {0, 1, 2}) EXPECT_EQ(count_of(dry_run(checked(layout, every), {}).traffic), never[0]);
}

TEST(Health, NamesWhoDiffers) {
  const auto say = [](const std::vector<uint64_t>& fingerprints) {
    std::vector<int> ranks;
    for (size_t i = 0; i < fingerprints.size(); ++i) ranks.push_back(static_cast<int>(10 + i));
    return describe_difference(fingerprints, ranks).value_or("equal");
  };
  EXPECT_EQ(say({7}), "equal");
  EXPECT_EQ(say({7, 7, 7}), "equal");
  EXPECT_EQ(say({7, 8}), "ranks 10, 11 differ");
  EXPECT_EQ(say({7, 8, 9}), "ranks 10, 11, 12 all differ");
  EXPECT_EQ(say({9, 8, 8}), "ranks 11, 12 agree, rank 10 differs");
  EXPECT_EQ(say({1, 8, 8, 2}), "ranks 11, 12 agree, ranks 10, 13 differ");
  EXPECT_EQ(say({1, 8, 8, 1}), "no majority among ranks 10, 13 and ranks 11, 12");
}

}  // namespace
}  // namespace hlat
