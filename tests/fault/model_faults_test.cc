// Bugs of a model as planted faults: what they do to rows, gradients, tables and scalars, from when on and for how long.
#include "fault/model_faults.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "fault/damage.h"
#include "fault/injector.h"
#include "ops/download.h"
#include "support/message_of.h"
#include "support/real_run.h"
#include "support/temp_dir.h"

namespace hlat::fault {
namespace {

// One rank with planted faults and a model to plant them in.
struct FaultyRun {
  explicit FaultyRun(const std::string& inject, Config c = tiny_config()) : run(c) {
    c.run.dir = dir.path("run");
    c.fault.inject = inject;
    injector.emplace(c, InjectorSetup{.rank = 0, .ranks = 1});
    injector->place(run.model().mesh(), run.executor().params(), run.device(), 100);
    run.train().inject(*injector);
  }
  // What the first step makes, with the faults that are due then, of weights that `change` has changed before.
  std::map<std::string, std::vector<float>> gradients(const std::function<void(FaultyRun&)>& change = {}) {
    if (change) change(*this);
    injector->at_step(1);
    loss = run.step(1).loss;
    std::map<std::string, std::vector<float>> all;
    const ParamStore& params = run.executor().params();
    for (ParamId id = 0; id < params.size(); ++id) all[params.spec(id).name] = download_f32(run.device(), params.grad(id));
    return all;
  }
  std::vector<int32_t> inputs_of(int64_t micro, std::vector<int32_t> inputs) {
    std::vector<int32_t> targets = inputs;
    injector->rows(micro, 3, inputs, targets);
    return inputs;
  }

  test::TempDir dir;
  RealRun run;
  std::optional<Injector> injector;
  double loss = 0;
};

std::vector<float> times(std::vector<float> values, float factor) {
  for (float& v : values) v *= factor;
  return values;
}

using Ids = std::vector<int32_t>;

TEST(ModelFaults, ALeakIsOfTheFirstBlockFromItsStepOnForItsSteps) {
  FaultyRun f("leak step=2 steps=2");
  for (int64_t step = 1; step <= 4; ++step) {
    f.injector->at_step(step);
    EXPECT_EQ(f.injector->in_passes(), step == 2 || step == 3) << step;
    EXPECT_EQ(f.injector->passes().attention(0) != nullptr, step == 2 || step == 3) << step;
    EXPECT_EQ(f.injector->passes().attention(1), nullptr) << step;
    EXPECT_EQ(f.inputs_of(0, {1, 2, 3, 4, 5, 6}), (Ids{1, 2, 3, 4, 5, 6})) << "rows are as they are";
  }
}

TEST(ModelFaults, AFaultWithoutAStepComesAtTheFirstOneOfTheProcess) {
  FaultyRun f("leak");
  f.injector->at_step(40);
  EXPECT_TRUE(f.injector->in_passes());
}

TEST(ModelFaults, ARepeatedSourceGivesEverySecondRowAgainAlsoOverMicroBatches) {
  FaultyRun f("repeat");
  f.injector->at_step(1);
  EXPECT_EQ(f.inputs_of(0, {1, 2, 3, 4, 5, 6}), (Ids{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(f.inputs_of(2, {1, 2, 4}), (Ids{1, 2, 4}));
  EXPECT_EQ(f.inputs_of(3, {7, 8, 9}), (Ids{1, 2, 4}));
}

TEST(ModelFaults, ATableOfRopeHasAnotherBase) {
  FaultyRun f("rope factor=4");
  const Tensor table = f.run.executor().rope_table();
  const std::vector<float> before = download_f32(f.run.device(), table);
  f.injector->at_step(1);
  const std::vector<float> after = download_f32(f.run.device(), table);
  const auto at = [&](int64_t t, int64_t i) { return static_cast<size_t>(t * table.dim(1) + i); };
  EXPECT_EQ(after[at(5, 0)], before[at(5, 0)]) << "the first frequency is 1 with any base";
  EXPECT_NEAR(after[at(5, 1)], std::cos(5 * std::pow(40000.0, -2.0 / static_cast<double>(table.dim(1)))), 1e-6);
  EXPECT_NE(after[at(5, 1)], before[at(5, 1)]);
}

TEST(ModelFaults, GradientsAreScaledInTheTensorAlone) {
  FaultyRun f("scale_grad tensor=layers.1.mlp.down factor=3");
  f.run.step(1);
  const ParamStore& params = f.run.executor().params();
  const auto gradient = [&](const std::string& name) { return download_f32(f.run.device(), params.grad(*find_tensor(params, name))); };
  const auto scaled = gradient("layers.1.mlp.down"), other = gradient("layers.0.mlp.down");
  f.injector->at_step(1);
  for (size_t b = 0; b < params.buckets().size(); ++b) f.injector->gradients(b);
  EXPECT_EQ(gradient("layers.0.mlp.down"), other);
  EXPECT_FLOAT_EQ(gradient("layers.1.mlp.down")[7], 3 * scaled[7]);
}

// A weight of the last norm that is 4 everywhere makes the same logits, and the same gradients but for its own, which is a quarter.
TEST(ModelFaults, LogitsAndTheirGradientsAreThoseOfAScaledHead) {
  FaultyRun faulty("logits factor=4"), scaled("logits step=9"), sound("logits step=9");
  auto gradients = faulty.gradients();
  const auto expected = scaled.gradients([](FaultyRun& f) {
    const ParamStore& params = f.run.executor().params();
    multiply(f.run.device(), params.weight(*find_tensor(params, "head.norm")), 4);
  });
  EXPECT_EQ(gradients["head.norm"], times(expected.at("head.norm"), 4));
  gradients["head.norm"] = expected.at("head.norm");
  EXPECT_EQ(gradients, expected);
  EXPECT_EQ(faulty.loss, scaled.loss);
  EXPECT_NE(gradients, sound.gradients());
}

TEST(ModelFaults, ABlockThatIsComputedAgainHasAnotherEpsilon) {
  const auto changed = [](const std::string& recompute) {
    Config c = tiny_config();
    c.train.recompute = recompute == "none" ? Recompute{} : Recompute{.kind = RecomputeKind::selective, .every = 0};
    FaultyRun faulty("recompute", c), sound("recompute step=9", c);
    const auto a = faulty.gradients(), b = sound.gradients();
    EXPECT_EQ(faulty.loss, sound.loss);
    std::set<std::string> names;
    for (const auto& [name, gradient] : a)
      if (gradient != b.at(name)) names.insert(name);
    return names;
  };
  EXPECT_EQ(changed("none"), std::set<std::string>{}) << "nothing is computed again";
  const std::set<std::string> names = changed("selective");
  EXPECT_TRUE(names.contains("layers.0.norm1") && names.contains("layers.0.norm2") && names.contains("embedding"));
  for (const std::string& name : names) EXPECT_TRUE(name.starts_with("layers.0.") || name == "embedding") << name;
}

TEST(ModelFaults, WhatCannotBeIsBadInput) {
  EXPECT_NE(message_of([] { FaultyRun f("drop_share rank=0"); }).find("with parallel.dp = 1 there is no sum over dp"), std::string::npos);
  EXPECT_NE(message_of([] { FaultyRun f("scale_grad tensor=layer.1"); }).find("no tensor of this name"), std::string::npos);
}

}  // namespace
}  // namespace hlat::fault
