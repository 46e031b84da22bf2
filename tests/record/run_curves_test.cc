// metrics.jsonl as curves: records under way, damaged or repeated; medians of what is known.
#include "record/run_curves.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/temp_dir.h"

namespace hlat {
namespace {

TEST(ReadCurves, CutLinesNotFiniteValuesAndOtherLines) {
  const test::TempDir dir;
  const RunCurves c = read_curves(dir.write("metrics.jsonl",
                                            R"({"step":1,"tokens":10,"loss":3.5,"step_s":1}
{"step":2,"tokens":20,"loss":null,"not_finite":{"loss":"nan"},"step_s":1}
garbage
{"step":3,"loss":9}
{"step":3,"tokens":30,"loss":3.25,"step_s":1,"monitors":{"grad_norm":[1,null,3],"drift":0.5,"source_loss":{"web":2}}}
{"step":4,"tokens":40,"loss":3.)"));
  EXPECT_EQ(c.step, (std::vector<int64_t>{1, 2, 3})) << "the line that is being written is not there yet";
  EXPECT_EQ(c.tokens.back(), 30);
  EXPECT_EQ(c.damaged, 2) << "a line without tokens is none of a step";
  ASSERT_EQ(c.curve("loss").size(), 3u);
  EXPECT_TRUE(std::isnan(c.curve("loss").value[1]));
  EXPECT_EQ(c.curve("monitors/drift").value, std::vector<double>{0.5});
  EXPECT_EQ(c.curve("monitors/source_loss/web").value, std::vector<double>{2});
  ASSERT_EQ(c.lists.at("grad_norm").values.size(), 1u);
  EXPECT_TRUE(std::isnan(c.lists.at("grad_norm").values[0][1]));
  EXPECT_EQ(c.curve("no such curve").size(), 0u);
  EXPECT_TRUE(read_curves(dir.path("none.jsonl")).step.empty());
}

TEST(ReadCurves, TheLastWritingOfAStepCounts) {
  const test::TempDir dir;
  std::string text;
  for (const auto& [step, loss] : {std::pair(1, 9), {2, 8}, {3, 7}, {4, 6}, {3, 5}})
    text += fmt::format("{{\"step\":{},\"tokens\":{},\"loss\":{}}}\n", step, step, loss);
  const RunCurves c = read_curves(dir.write("metrics.jsonl", text));
  EXPECT_EQ(c.step, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(c.curve("loss").value, (std::vector<double>{9, 8, 5}));
}

TEST(Curve, ValuesAtStepsAndCuts) {
  Curve c{.step = {1, 2, 4}, .value = {5, NAN, 7}};
  const std::vector<double> at = c.values_at({0, 1, 3, 4, 9});
  EXPECT_EQ(at[1], 5);
  EXPECT_EQ(at[3], 7);
  for (const size_t i : {0, 2, 4}) EXPECT_TRUE(std::isnan(at[i])) << i;
  c.cut_from(3);
  EXPECT_EQ(c.step, (std::vector<int64_t>{1, 2}));
}

TEST(FiniteMedian, IsOfWhatIsKnown) {
  EXPECT_EQ(finite_median({3, 1, 2}), 2);
  EXPECT_EQ(finite_median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(finite_median({NAN, 1, NAN, 2, INFINITY, 6, NAN}), 2);
  EXPECT_TRUE(std::isnan(finite_median({})));
  EXPECT_TRUE(std::isnan(finite_median({NAN})));
  EXPECT_EQ(usual_value({100, 1, 2}), 1.5) << "the first step starts libraries";
  EXPECT_EQ(usual_value({100}), 100);
}

}  // namespace
}  // namespace hlat
