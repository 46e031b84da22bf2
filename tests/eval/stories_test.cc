// stories260K, a small model with trained weights: its greedy text is the known one, and its loss on TinyStories is what `transformers`
// computes (tools/stories_reference.py), near the 1.297 that its author reports.
#include <gtest/gtest.h>

#include <cmath>

#include "support/harness_fixture.h"
#include "support/harness_model.h"

namespace hlat {
namespace {

using nlohmann::json;

constexpr int32_t kBegin = 1;
constexpr int64_t kLength = 512;

std::vector<int32_t> stream_of(const Tokenizer& tokenizer, const json& stories, size_t count) {
  const auto encoder = tokenizer.encoder();
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) {
    std::string text = stories[i];
    const size_t first = text.find_first_not_of(" \n\t\r"), last = text.find_last_not_of(" \n\t\r");
    ids.push_back(kBegin);
    encoder->encode(std::string_view(text).substr(first, last + 1 - first), ids);
  }
  return ids;
}

TEST(Stories260KHeavy, GreedyTextIsTheKnownOne) {
  if (!std::filesystem::exists(test::shared_data())) GTEST_SKIP() << test::kNoSharedData;
  test::HarnessModel model("stories260K");
  const auto known = json::parse(test::slurp(test::shared_data() / "weights/stories260K_hf/greedy_200.json"));
  const auto ids = known["ids"].get<std::vector<int32_t>>();
  const GenerateRequest request{.prompt = {kBegin}, .max_new = static_cast<int64_t>(ids.size())};
  const std::vector<Generation> made = model.opened().model().generate({&request, 1});
  std::vector<int32_t> have;
  for (const NewToken& token : made[0].tokens) have.push_back(token.id);
  EXPECT_EQ(have, ids);
  EXPECT_EQ(model.opened().tokenizer().get().decode(have), known["text"].get<std::string>());
}

TEST(Stories260KHeavy, LossOnTinyStoriesIsThatOfTransformersAndNearTheAuthors) {
  if (!std::filesystem::exists(test::shared_data())) GTEST_SKIP() << test::kNoSharedData;
  test::HarnessModel model("stories260K");
  const json& want = model.fixture()["stories"];
  const json stories = json::parse(test::slurp(test::shared_data() / want["file"].get<std::string>()));
  const std::vector<int32_t> ids = stream_of(model.opened().tokenizer().get(), stories, want["stories"]);
  const auto rows = (static_cast<int64_t>(ids.size()) - 1) / kLength;
  ASSERT_EQ(rows, want["rows"].get<int64_t>());
  std::vector<ScoreRequest> requests;
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = ids.begin() + row * kLength;
    requests.push_back({.context = {*begin}, .continuation = {begin + 1, begin + kLength + 1}});
  }
  double sum = 0;
  for (const Score& score : model.opened().model().score(requests)) sum -= score.logprob;
  const double loss = sum / static_cast<double>(rows * kLength);
  EXPECT_NEAR(loss, want["loss"].get<double>(), 1e-5);
  EXPECT_NEAR(loss, 1.297, 0.05);
}

}  // namespace
}  // namespace hlat
