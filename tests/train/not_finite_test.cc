// What the error of a step whose numbers are not finite says about the weights.
#include <gtest/gtest.h>

#include <limits>

#include "support/message_of.h"
#include "support/real_run.h"

namespace hlat {
namespace {

// Plants a loss that is not finite beside gradients that are.
class NanLoss : public RandomRows {
 public:
  explicit NanLoss(RealRun& run) : RandomRows(run.executor().config()), loss_sum_(run.executor().loss_sum()) {}
  void read(int64_t first, Batch& batch) override {
    RandomRows::read(first, batch);
    *static_cast<double*>(loss_sum_.data) = std::numeric_limits<double>::quiet_NaN();
  }

 private:
  Tensor loss_sum_;
};

TEST(NotFinite, ALossBesideFiniteGradientsLeavesTheWeightsOfThisStep) {
  RealRun run(tiny_config());
  run.step(1);
  const auto before = run.weight_bytes();
  NanLoss rows(run);
  const std::string told = message_of([&] { run.step(2, rows); });
  EXPECT_NE(run.weight_bytes(), before) << "the update was done";
  EXPECT_NE(told.find("at step 2 the loss is nan (all gradients are finite); the weights are those of step 2"), std::string::npos) << told;
}

TEST(NotFinite, IsANumericalError) {
  RealRun run(tiny_config());
  NanLoss rows(run);
  EXPECT_THROW(run.step(1, rows), NumericalError);
}

}  // namespace
}  // namespace hlat
