// An imported model computes what Hugging Face's `transformers` computes with the same folder (tools/hf_fixtures.py): MHA, GQA with
// llama3's rotary scaling, tied with linear scaling; bf16, f32 and f16 files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/hf/hf_tensors.h"
#include "checkpoint/load_state.h"
#include "support/hf_folder.h"
#include "support/paths.h"
#include "support/real_run.h"

namespace hlat {
namespace {

using test::hf_fixture;
using test::TempDir;

// A model with the weights of an imported folder.
class ImportedRun {
 public:
  explicit ImportedRun(const std::filesystem::path& folder, const TestDevice& on = cpu_device())
      : result_(import_hf(folder, dir_.path("imported"), {.hlat = "test"})), run_(one_row(result_.config), on) {
    CheckpointReader reader(result_.checkpoint);
    load_state(reader, run_.executor().params(), run_.model().mesh(), run_.device(), LoadWhat::weights, 1);
  }
  Executor& executor() { return run_.executor(); }
  const ImportResult& result() const { return result_; }

 private:
  static Config one_row(Config config) {
    config.train.global_batch = config.train.micro_batch = 1;
    return config;
  }

  TempDir dir_;
  ImportResult result_;
  RealRun run_;
};

class HfLogits : public ::testing::TestWithParam<TestDevice> {};

TEST_P(HfLogits, AreThoseOfTransformers) {
  for (const std::string& name : test::hf_fixtures()) {
    ImportedRun run(hf_fixture(name), GetParam());
    const auto expected = nlohmann::json::parse(test::slurp((hf_fixture(name) / "logits.json").string()));
    const auto prompt = expected["prompt"].get<std::vector<int32_t>>();
    const auto seq = static_cast<int64_t>(prompt.size());
    for (const auto& [row, values] : expected["logits"].items()) {
      const auto want = values.get<std::vector<double>>();
      const std::vector<float> have = run.executor().next_logits(prompt, seq, std::stoll(row) + 1);
      ASSERT_EQ(have.size(), want.size());
      double largest = 0;
      for (const double v : want) largest = std::max(largest, std::abs(v));
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-4 * largest) << name << " row " << row << " token " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, HfLogits, ::testing::ValuesIn(test_devices()), [](const auto& p) { return p.param.name; });

// An import keeps the names of the model's own parameters.
TEST(HfImport, TensorsAreThoseOfTheModel) {
  for (const bool tied : {false, true}) {
    Config config = tiny_config();
    config.model.tied = tied;
    RealRun run(config);
    const ParamStore& params = run.executor().params();
    const std::vector<HfTensor> tensors = hf_tensors(config.model);
    ASSERT_EQ(static_cast<size_t>(params.size()), tensors.size());
    for (const HfTensor& t : tensors) {
      bool found = false;
      for (ParamId id = 0; id < params.size(); ++id)
        found = found || (params.spec(id).name == t.tensor.name && params.weight(id).shape == t.tensor.shape);
      EXPECT_TRUE(found) << t.tensor.name;
    }
  }
}

TEST(HfImport, Stories260KRepeatsItsGreedyText) {
  const std::filesystem::path folder = test::source_path("../shared/data/weights/stories260K_hf");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "without ../shared/data/weights";
  ImportedRun run(folder);
  EXPECT_TRUE(std::filesystem::exists(run.result().tokenizer)) << run.result().tokenizer;
  const auto expected = nlohmann::json::parse(test::slurp((folder / "greedy_200.json").string()))["ids"].get<std::vector<int32_t>>();
  const auto seq = static_cast<int64_t>(expected.size()) + 1;
  std::vector<int32_t> ids(static_cast<size_t>(seq), 0);
  ids[0] = 1;  // the begin token
  for (int64_t length = 1; length < seq; ++length) {
    const std::vector<float> logits = run.executor().next_logits(ids, seq, length);
    ids[static_cast<size_t>(length)] = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  EXPECT_EQ(std::vector<int32_t>(ids.begin() + 1, ids.end()), expected);
}

}  // namespace
}  // namespace hlat
