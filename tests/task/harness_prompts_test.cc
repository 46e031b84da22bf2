// Every task asks what lm-evaluation-harness asks, to the letter: contexts, continuations, few-shot examples and their order, stop strings.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/rng.h"
#include "support/harness_fixture.h"

namespace hlat {
namespace {

using nlohmann::json;

std::string hashed(const std::string& text) { return fmt::format("{:016x}", hash_name(text)); }

// Where the fixture has the text itself, a difference is shown in words.
void expect_request(const TextRequest& have, const json& hashes, const json* texts, const std::string& where) {
  if (texts != nullptr) {
    EXPECT_EQ(have.context, (*texts)[0].is_null() ? have.context : (*texts)[0].get<std::string>()) << where;
    EXPECT_EQ(have.continuation, (*texts)[1].get<std::string>()) << where;
  }
  EXPECT_EQ(hashed(have.context), hashes[0].get<std::string>()) << where << ": context\n" << have.context;
  EXPECT_EQ(hashed(have.continuation), hashes[1].get<std::string>()) << where << ": continuation\n" << have.continuation;
}

void expect_document(const Example& have, const json& want, const std::string& where) {
  ASSERT_EQ(have.id, want["id"].get<int64_t>()) << where;
  ASSERT_EQ(have.requests.size(), want["hashes"].size()) << where;
  for (size_t i = 0; i < have.requests.size(); ++i) {
    const json* texts = want.contains("texts") ? &want["texts"][i] : nullptr;
    expect_request(have.requests[i], want["hashes"][i], texts, fmt::format("{} request {}", where, i));
  }
}

void expect_generation(const TextRequest& have, const json& want, const std::string& where) {
  EXPECT_EQ(have.kind, AskKind::generate) << where;
  EXPECT_EQ(json(have.stop), want["until"]) << where;
  EXPECT_EQ(have.sampling.temperature, 0) << where;
}

TEST(HarnessPrompts, EveryTaskAsksTheSameTexts) {
  if (!std::filesystem::exists(test::shared_data())) GTEST_SKIP() << test::kNoSharedData;
  TaskLibrary library;
  const json fixture = test::harness_fixture("prompts.json");
  for (const auto& [name, want] : fixture["tasks"].items()) {
    const auto examples = test::harness_examples(test::find_harness_task(library, name), static_cast<int64_t>(want["docs"].size()));
    ASSERT_EQ(examples.size(), want["docs"].size()) << name;
    for (size_t i = 0; i < examples.size(); ++i) expect_document(examples[i], want["docs"][i], fmt::format("{} document {}", name, i));
    if (want.contains("generation")) expect_generation(examples[0].requests[0], want["generation"], name);
  }
}

}  // namespace
}  // namespace hlat
