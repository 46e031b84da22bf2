// hlat ckpt average: the mean in f64, rounded once; what does not go together is refused by name.
#include "checkpoint/average.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/message_of.h"
#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

fs::path average(const std::vector<fs::path>& from, const fs::path& to, AverageOptions options = {}) {
  options.hlat = "0.0.0";
  return CheckpointAverage(from, options).write(to, 2);
}

std::vector<float> values(const fs::path& folder, const std::string& name) {
  CheckpointReader reader(folder);
  return read_values(reader, StateKind::weight, name);
}

TEST(CheckpointAverages, AreTheMeanOfTheMastersRoundedToTheWeightsType) {
  const TempDir dir;
  SmallCheckpoint a = small_model(1), b = small_model(2);
  b.step = 20;
  b.tokens = 2560;
  const fs::path made = average({write_in_columns(dir.path("a"), a, 2), write_small(dir.path("b"), b)}, dir.path("mean"));
  EXPECT_EQ(made, fs::path(dir.path("mean")) / "step_20");
  CheckpointReader reader(made);
  EXPECT_EQ(reader.index().content, CheckpointContent::weights);
  EXPECT_EQ(reader.index().tokens, 2560);
  EXPECT_EQ(nlohmann::json::parse(reader.index().config), nlohmann::json::parse(b.config));
  EXPECT_EQ(reader.index().tensors.size(), 4u);
  for (const SavedTensor& t : reader.index().tensors) {
    EXPECT_EQ(t.dtype, DType::bf16);
    const std::vector<float> got = read_values(reader, StateKind::weight, t.name);
    const std::vector<float>&x = a.tensor(StateKind::master, t.name).values, &y = b.tensor(StateKind::master, t.name).values;
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], (static_cast<double>(x[i]) + y[i]) / 2, std::abs(got[i]) / 256 + 1e-30) << t.name;
  }
}

// The weight of a layer in FP8 is saved as its master; the others' masters are averaged all the same.
TEST(CheckpointAverages, TakeMastersWhereSomeWeightsAreTheirOwn) {
  const TempDir dir;
  const auto written = [&](const char* name, uint32_t seed) {
    SmallCheckpoint c = small_model(seed);
    std::erase_if(c.tensors, [](const SmallTensor& t) { return t.kind == StateKind::weight && t.name == "layers.0.attention.qkv"; });
    for (SmallTensor& t : c.tensors)
      if (t.kind == StateKind::master && t.name == "layers.0.attention.qkv") t.kind = StateKind::weight;
    return std::pair{write_small(dir.path(name), c), c};
  };
  auto [from_a, a] = written("a", 1);
  auto [from_b, b] = written("b", 2);
  const fs::path wide = average({from_a, from_b}, dir.path("wide"), {.dtype = DType::f32});
  for (const auto& [name, kind] : {std::pair{"embedding", StateKind::master}, {"layers.0.attention.qkv", StateKind::weight}}) {
    const std::vector<float> got = values(wide, name), &x = a.tensor(kind, name).values, &y = b.tensor(kind, name).values;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<float>((static_cast<double>(x[i]) + y[i]) / 2)) << name;
  }
  CheckpointReader reader(average({from_a, from_b}, dir.path("bf16")));
  for (const SavedTensor& t : reader.index().tensors) EXPECT_EQ(t.dtype, DType::bf16) << t.name;
}

TEST(CheckpointAverages, RoundOnceToTheNearestEven) {
  const TempDir dir;
  const float half = 1 + 0x1p-8f;  // between the bf16 numbers 1 and 1 + 2^-7
  const auto one = [&](const std::string& name, float x, float y) {
    SmallCheckpoint c;
    c.content = CheckpointContent::weights;
    c.tensors = {{"w", {2}, {x, y}}};
    return write_small(dir.path(name), c);
  };
  // The mean of the second is 1 + 2^-8 + 2^-24: as f32 it would become the half, and then 1.
  const std::vector<fs::path> from = {one("a", half, half), one("b", half, half + 0x1p-23f)};
  EXPECT_EQ(values(average(from, dir.path("bf16"), {.dtype = DType::bf16}), "w"), (std::vector<float>{1, 1 + 0x1p-7f}));
  EXPECT_EQ(values(average(from, dir.path("f32")), "w"), (std::vector<float>{half, half}));
}

TEST(CheckpointAverages, WeighTheCheckpoints) {
  const TempDir dir;
  std::vector<fs::path> from;
  for (const float x : {1.0f, 2.0f, 6.0f}) {
    SmallCheckpoint c;
    c.tensors = {{"w", {1}, {x}}};
    from.push_back(write_small(dir.path("c" + std::to_string(x)), c));
  }
  EXPECT_EQ(values(average(from, dir.path("equal")), "w").at(0), 3);
  const fs::path made = average(from, dir.path("shares"), {.shares = {1, 2, 5}});
  EXPECT_EQ(values(made, "w").at(0), 35.0f / 8);
  const auto record = nlohmann::json::parse(CheckpointReader(made).index().find_record("average")->json);
  EXPECT_EQ(record["kind"], "weight");
  ASSERT_EQ(record["of"].size(), 3u);
  EXPECT_EQ(record["of"][2]["weight"], 5);
  EXPECT_EQ(record["of"][0]["run"], "run-a");
  EXPECT_EQ(record["of"][1]["path"], from[1].string());
}

TEST(CheckpointAverages, RefuseByNameWhatDoesNotGoTogether) {
  const TempDir dir;
  const SmallCheckpoint a = small_model(1);
  const fs::path from = write_small(dir.path("a"), a);
  int count = 0;
  const auto refused = [&](const std::function<void(SmallCheckpoint&)>& change, const AverageOptions& options = {}) {
    SmallCheckpoint b = a;
    change(b);
    const fs::path other = write_small(dir.path("b" + std::to_string(++count)), b);
    return message_of([&] { average({from, other}, dir.path("mean"), options); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nwithout: " << part;
  };
  has(refused([](SmallCheckpoint& b) { b.tensor(StateKind::weight, "embedding").shape = {8, 16}; }), "embedding is (16, 8) in ");
  has(refused([](SmallCheckpoint& b) { b.tensors.resize(b.tensors.size() - 4); }), "step_10 has the weight head.output, and ");
  has(refused([](SmallCheckpoint& b) { b.tensors.push_back({"extra", {1}, {1}}); }), "step_10 has the weight extra, and ");
  has(refused([](SmallCheckpoint& b) { b.config = R"({"model":{"layers":2,"heads":4,"rope_theta":10000.0}})"; }),
      "these are different models: model.heads is 2 in ");
  const auto same = [](SmallCheckpoint&) {};
  has(refused(same, {.shares = {1}}), "there are 1 weights for 2 checkpoints");
  has(refused(same, {.shares = {1, -1}}), "the weight -1 of a checkpoint is not above 0");
  has(message_of([&] { average({from}, dir.path("mean")); }), "an average needs two checkpoints or more");
  EXPECT_FALSE(fs::exists(dir.path("mean"))) << "nothing was written";
  average({from, from}, dir.path("mean"));
  has(message_of([&] { average({from, from}, dir.path("mean")); }), "step_10 is there already; give another folder");
}

}  // namespace
}  // namespace hlat::test
