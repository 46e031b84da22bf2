// stories260K, a small model with trained weights: its greedy text is the known one, and its loss on TinyStories is what `transformers`
// computes (tools/stories_reference.py), near the 1.297 that its author reports.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/harness_fixture.h"
#include "support/harness_model.h"

namespace hlat {
namespace {

using nlohmann::json;

constexpr int32_t kBegin = 1;
constexpr int64_t kLength = 512;

std::string stripped(const std::string& text) {
  const size_t first = text.find_first_not_of(" \n\t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \n\t\r") + 1 - first);
}

// A JSON list of stories, of which those with other characters than ASCII are damaged; or a text with <|endoftext|> between them.
std::vector<std::string> stories_of(const std::filesystem::path& file) {
  const std::string text = test::slurp(file.string());
  std::vector<std::string> stories;
  const auto add = [&](const std::string& story) {
    if (!stripped(story).empty()) stories.push_back(stripped(story));
  };
  if (file.extension() == ".json") {
    for (const std::string story : json::parse(text))
      if (std::all_of(story.begin(), story.end(), [](char c) { return static_cast<unsigned char>(c) < 128; })) add(story);
    return stories;
  }
  constexpr std::string_view kEnd = "<|endoftext|>";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(kEnd, begin), text.size());
    add(text.substr(begin, end - begin));
    begin = end + kEnd.size();
  }
  return stories;
}

std::vector<int32_t> stream_of(const Tokenizer& tokenizer, const std::vector<std::string>& stories) {
  const auto encoder = tokenizer.encoder();
  std::vector<int32_t> ids;
  for (const std::string& story : stories) {
    ids.push_back(kBegin);
    encoder->encode(story, ids);
  }
  return ids;
}

// Mean of the rows of a stream, each with the token after it as its last target.
double mean_loss(LanguageModel& model, const std::vector<int32_t>& ids, int64_t rows) {
  std::vector<ScoreRequest> requests;
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = ids.begin() + row * kLength;
    requests.push_back({.context = {*begin}, .continuation = {begin + 1, begin + kLength + 1}});
  }
  double sum = 0;
  for (const Score& score : model.score(requests)) sum -= score.logprob;
  return sum / static_cast<double>(rows * kLength);
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
  for (const json& want : model.fixture()["stories"]) {
    std::vector<std::string> stories = stories_of(test::shared_data() / want["file"].get<std::string>());
    stories.resize(want["stories"]);
    const std::vector<int32_t> ids = stream_of(model.opened().tokenizer().get(), stories);
    const int64_t rows = (static_cast<int64_t>(ids.size()) - 1) / kLength;
    ASSERT_EQ(rows, want["rows"].get<int64_t>()) << want["file"];
    const double loss = mean_loss(model.opened().model(), ids, rows);
    EXPECT_NEAR(loss, want["loss"].get<double>(), 1e-5) << want["file"];
    EXPECT_NEAR(loss, 1.297, 0.05) << want["file"];
  }
}

}  // namespace
}  // namespace hlat
