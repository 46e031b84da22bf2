// Requests on their way to other ranks.
#include "eval/request_exchange.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hlat {
namespace {

TEST(RequestExchange, RequestsAreTheSameAfterTheJourneyAndRefusedWhenTheyAreCut) {
  Asked asked;
  asked.scores = {{.context = {1, 2, 3}, .continuation = {4}}, {.context = {-1}, .continuation = {5, 6}}};
  asked.prompts.resize(2);
  asked.prompts[0] = {.prompt = {7, 8}, .max_new = 3, .sampling = {}, .end = -1, .logprobs = true};
  asked.prompts[1].end = 9;
  asked.stops = {{"\n\n", ""}, {}};
  const std::string bytes = pack(asked);
  const Asked back = unpack(bytes);
  ASSERT_EQ(back.scores.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.scores[i].context, asked.scores[i].context);
    EXPECT_EQ(back.scores[i].continuation, asked.scores[i].continuation);
  }
  ASSERT_EQ(back.prompts.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.prompts[i].prompt, asked.prompts[i].prompt);
    EXPECT_EQ(back.prompts[i].max_new, asked.prompts[i].max_new);
    EXPECT_EQ(back.prompts[i].end, asked.prompts[i].end);
    EXPECT_EQ(back.prompts[i].logprobs, asked.prompts[i].logprobs);
  }
  EXPECT_EQ(back.stops, asked.stops);
  EXPECT_EQ(pack(back), bytes);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW(unpack(std::string_view(bytes).substr(0, n)), FaultError) << n;
}

}  // namespace
}  // namespace hlat
