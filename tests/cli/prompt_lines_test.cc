// Lines of prompts: what they leave open comes from the command line, and every line that cannot be used is named.
#include "cli/prompt_lines.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json_text.h"
#include "support/message_of.h"

namespace hlat {
namespace {

const TextRequest kDefaults{
    .kind = AskKind::generate, .stop = {"\n"}, .max_tokens = 9, .sampling = {.temperature = 0.5, .top_k = 3, .seed = 100}};

TEST(PromptLines, ALineChangesWhatItNamesAndNothingElse) {
  const auto lines = read_prompt_lines(
      "{\"prompt\": \"a\"}\r\n\n  \n"
      R"({"prompt": "b\n\u20ac", "max_tokens": 2, "temperature": 1, "top_k": 0, "top_p": 0.5, "min_p": 0.1, "repetition_penalty": 2, "seed": 18446744073709551615, "stop": "x", "id": [1]})"
      "\n"
      R"({"prompt": "", "stop": ["y", "z"]})",
      "in", kDefaults);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].request.context, "a");
  EXPECT_EQ(lines[0].request.max_tokens, 9);
  EXPECT_EQ(lines[0].request.sampling, kDefaults.sampling);
  EXPECT_EQ(lines[0].request.stop, kDefaults.stop);
  EXPECT_EQ(lines[1].request.context, "b\n\xE2\x82\xAC");
  EXPECT_EQ(lines[1].request.max_tokens, 2);
  EXPECT_EQ(lines[1].request.sampling,
            (Sampling{.temperature = 1, .top_k = 0, .top_p = 0.5, .min_p = 0.1, .repetition_penalty = 2, .seed = 18446744073709551615u}));
  EXPECT_EQ(lines[1].request.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(lines[1].id, nlohmann::ordered_json::array({1}));
  EXPECT_EQ(lines[1].number, 4u);
  EXPECT_EQ(lines[2].request.stop, (std::vector<std::string>{"y", "z"}));
  EXPECT_EQ(lines[2].request.sampling.seed, 102u) << "the third prompt";
}

TEST(PromptLines, AllBadLinesAreListedUpToAPage) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += i == 3 ? "{\"prompt\": \"good\"}\n" : "{}\n";
  const std::string message = message_of([&] { read_prompt_lines(text, "in.jsonl", kDefaults); });
  EXPECT_EQ(message.find("in.jsonl: lines that cannot be used; nothing was generated\n  line 1: it has no prompt\n  line 2: "), 0u)
      << message;
  EXPECT_EQ(message.find("line 4:"), std::string::npos);
  EXPECT_TRUE(message.ends_with("\n  and 9 more")) << message;
}

TEST(PromptLines, AllThatIsWrongWithALineIsTold) {
  EXPECT_EQ(message_of([&] {
              read_prompt_lines(R"({"prompt": 1, "top_p": 3, "seed": -1, "stop": 2, "max_tokens": "x", "min_p": -1, "sead": 1})", "in",
                                kDefaults);
            }),
            "in: lines that cannot be used; nothing was generated\n  line 1: unknown key sead; did you mean seed?\n"
            "  line 1: prompt: must be a text\n  line 1: max_tokens: must be a whole number\n"
            "  line 1: seed: must be a whole number from 0 on\n  line 1: stop: must be a text or a list of texts\n"
            "  line 1: top_p = 3: must be from 0 to 1 (all tokens)\n  line 1: min_p = -1: must be from 0 (all tokens) to 1");
}

TEST(PromptLines, AnswersOfTheFirstPromptsAreCounted) {
  const auto lines = read_prompt_lines("{\"prompt\": \"a\", \"id\": 7}\n{\"prompt\": \"b\"}\n", "in", kDefaults);
  const std::string first = "{\"id\":7,\"prompt\":\"a\",\"text\":\"x\"}\n", second = "{\"prompt\":\"b\",\"text\":\"y\"}\n";
  EXPECT_EQ(count_answers("", "out", lines), 0u);
  EXPECT_EQ(count_answers(first, "out", lines), 1u);
  EXPECT_EQ(count_answers(first + second.substr(0, 9), "out", lines), 1u) << "a line without its end";
  EXPECT_EQ(count_answers(first + second, "out", lines), 2u);
  EXPECT_EQ(message_of([&] { count_answers(second, "out", lines); }),
            "out: line 1 is no answer to prompt 1 of this batch; give another --out");
  EXPECT_THROW(count_answers(first + second + second, "out", lines), UsageError) << "more than there are";
  EXPECT_THROW(count_answers("{\"id\":8,\"prompt\":\"a\"}\n", "out", lines), UsageError) << "another id";
  EXPECT_THROW(count_answers("no json\n", "out", lines), UsageError);
}

TEST(PromptLines, ALineThatOnlyTheModelCannotTakeIsNamedToo) {
  const auto lines = read_prompt_lines("\n{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n", "in", kDefaults);
  const auto check = [](const TextRequest& r) {
    if (r.context == "b") throw UsageError("not b");
  };
  EXPECT_EQ(message_of([&] { check_prompt_lines(lines, "in", check); }),
            "in: lines that cannot be used; nothing was generated\n  line 3: not b");
}

TEST(PromptLines, WhatAModelCannotReadIsNamed) {
  TextRequest request = kDefaults;
  EXPECT_NO_THROW(check_request(request, 10));
  EXPECT_EQ(message_of([&] { check_request(request, 9); }), "max_tokens = 9: the model reads 9 tokens at a time, prompt and text together");
  request.stop = {"\xFF"};
  EXPECT_EQ(message_of([&] { check_request(request, 0); }), "stop: is no UTF-8");
}

TEST(PromptLines, AnAnswerIsALine) {
  const PromptLine line{.request = {.context = "p", .sampling = {.temperature = 1, .seed = 4}}, .id = "x"};
  const Completion done{.text = "t\xE2\x82",
                        .generation = {.tokens = {{.id = 5, .logprob = -0.5F}, {.id = 6, .logprob = -2}}, .reason = EndReason::stopped},
                        .prompt_tokens = 3,
                        .cut = 1};
  EXPECT_EQ(json_text(completion_json(line, done, true)),
            "{\"id\":\"x\",\"prompt\":\"p\",\"text\":\"t\xEF\xBF\xBD\",\"tokens\":[5,6],\"reason\":\"stop\",\"logprobs\":[-0.5,-2.0],"
            "\"prompt_tokens\":3,\"prompt_tokens_cut\":1,\"seed\":4}");
  const nlohmann::ordered_json plain = completion_json({.request = {.context = "p"}}, {}, false);
  EXPECT_EQ(json_text(plain), R"({"prompt":"p","text":"","tokens":[],"reason":"length","prompt_tokens":0})");
}

}  // namespace
}  // namespace hlat
