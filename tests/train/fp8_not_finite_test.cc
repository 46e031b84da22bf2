// A step under FP8 with a NaN on one rank changes nothing on any: weights and their transposes, masters, moments, scales and their history
// stay, whether the step ends with an error or is skipped, and the same step with sound numbers then has the bits of a run that met none.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/bf16.h"
#include "base/failure_word.h"
#include "fault/injector.h"
#include "fault/target.h"
#include "support/layout_run.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

// The bytes of all that an update changes on one rank.
std::string fp8_state_bytes(const ParamStore& params) {
  std::string all;
  const auto add = [&](const Tensor& t) {
    if (t.defined()) all.append(static_cast<const char*>(t.data), t.bytes());
  };
  for (const Bucket& b : params.buckets())
    for (const Tensor& t : {b.weight, b.transposed, b.master, b.m, b.v}) add(t);
  for (const Tensor& t : {params.fp8_state().scales, params.fp8_state().history, params.fp8_state().met_in_update()}) add(t);
  return all;
}

// In a gradient before it is summed over ranks, beside a finite loss; or in the rank's copy of the weight of a norm for the time of the
// step, so that operands of FP8 products meet it.
enum class NanIn { gradient, activations };

struct NanStep {
  Layout layout;
  int rank = 0;  // that has the NaN
  NanIn in = NanIn::gradient;
  bool skipped = false;  // by the gate of a loss policy; else the step ends with an error

  std::string name() const {
    return layout.name() + (in == NanIn::gradient ? "_gradient" : "_activations") + (skipped ? "_skipped" : "_refused");
  }
};
void PrintTo(const NanStep& s, std::ostream* out) { *out << s.name(); }

class Fp8NotFinite : public testing::TestWithParam<NanStep> {
 protected:
  // Step 2 with the NaN, on one rank of the mesh.
  void step_with_nan(TrainStep& train) {
    const Executor& executor = train.executor();
    const ParamStore& params = executor.params();
    const int rank = rank_of(executor.mesh().coord(), executor.mesh().shape());
    fault::Injector& faults = plant(train, rank);
    bf16* norm = nullptr;
    if (GetParam().in == NanIn::activations && rank == GetParam().rank) {
      const Tensor weight = params.weight(fault::find_tensor(params, "layers.1.norm2").value());
      ASSERT_EQ(weight.dtype, DType::bf16);
      norm = weight.as<bf16>();
    }
    const std::string before = fp8_state_bytes(params);
    const bf16 sound = norm == nullptr ? bf16{} : *norm;
    if (norm != nullptr) *norm = to_bf16(std::nanf(""));
    run_step_2(train);
    if (norm != nullptr) *norm = sound;
    EXPECT_TRUE(fp8_state_bytes(params) == before) << "rank " << rank << ": the state has changed";
    faults.at_step(3);  // its NaN was that of step 2
  }

  std::string& of_rank(std::map<int, std::string>& states, const TrainStep& train) {
    const std::lock_guard lock(mutex_);
    return states[rank_of(train.executor().mesh().coord(), train.executor().mesh().shape())];
  }

 private:
  fault::Injector& plant(TrainStep& train, int rank) {
    Config c = train.executor().config();
    const std::lock_guard lock(mutex_);
    c.run.dir = dir_.path("rank" + std::to_string(rank));
    if (GetParam().in == NanIn::gradient) c.fault.inject = fmt::format("nan rank={} step=2 tensor=layers.1.mlp.down", GetParam().rank);
    const int ranks = train.executor().mesh().shape().ranks();
    auto& faults = faults_[rank] = std::make_unique<fault::Injector>(c, fault::InjectorSetup{.rank = rank, .ranks = ranks});
    faults->place(train.executor().mesh(), train.executor().params(), train.executor().device(), 2);
    train.inject(*faults);
    faults->at_step(2);
    return *faults;
  }

  static void run_step_2(TrainStep& train) {
    const Executor& executor = train.executor();
    LayoutRows rows(executor.config(), executor.mesh());
    rows.step = 2;
    BatchSource* source = executor.reads_batches() ? &rows : nullptr;
    const double lr = executor.config().optim.lr;
    if (!GetParam().skipped) {
      try {
        train.run(2, lr, source);
        ADD_FAILURE() << "no error";
      } catch (const FailedStep& e) {
        EXPECT_EQ(e.kind, FailureKind::non_finite);
        EXPECT_EQ(e.step, 2);
      }
      return;
    }
    train.before_updates([](int64_t, double loss, double norm) {
      EXPECT_EQ(std::isfinite(loss), GetParam().in == NanIn::gradient);
      EXPECT_FALSE(std::isfinite(norm));
      return std::isfinite(norm);
    });
    EXPECT_TRUE(train.run(2, lr, source).skipped);
    train.before_updates({});
  }

  test::TempDir dir_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<fault::Injector>> faults_;
};

TEST_P(Fp8NotFinite, ChangesNothingOnAnyRank) {
  const Config config = GetParam().layout.config();
  std::map<int, std::string> right, after;
  const LayoutResult plain = run_layout(config, 2, [&](TrainStep& train, int64_t step) {
    if (step == 2) of_rank(right, train) = fp8_state_bytes(train.executor().params());
  });
  const LayoutResult result = run_layout(config, 2, [&](TrainStep& train, int64_t step) {
    if (step == 1) return step_with_nan(train);
    of_rank(after, train) = fp8_state_bytes(train.executor().params());
  });
  EXPECT_TRUE(after == right) << "the step after it has other bits";
  EXPECT_EQ(result.steps[1].loss, plain.steps[1].loss);
  EXPECT_EQ(result.steps[1].grad_norm, plain.steps[1].grad_norm);
}

std::vector<NanStep> nan_steps() {
  std::vector<NanStep> all;
  for (const PrecisionKind precision : {PrecisionKind::fp8, PrecisionKind::fp8_sr})
    for (Layout layout : {Layout{}, Layout{.dp = 2, .zero1 = true}, Layout{.tp = 2}}) {
      layout.precision = precision;
      for (const NanIn in : {NanIn::gradient, NanIn::activations})
        for (const bool skipped : {false, true})
          all.push_back({.layout = layout, .rank = layout.tp * layout.dp - 1, .in = in, .skipped = skipped});
    }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Table, Fp8NotFinite, testing::ValuesIn(nan_steps()), [](const auto& row) { return row.param.name(); });

}  // namespace
}  // namespace hlat
