// What a row of tokens tells by itself, without a model: how much of it repeats an earlier part, and how well copying would predict it.
//
// repetition: the share of tokens that lie in a stretch of kRepeat tokens or more which stands earlier in the row too; the two may overlap.
//
// copy_baseline: the mean of -ln p(x) over the tokens after the first, where p mixes two predictors that see only what stands before x:
//   p(x) = c [x = y] + (1 - c) f(x)
//   f(x) = (count of x + d / V) / (t + d) after t tokens, d - 1 of them different ones (a token that is new has the mass d / (t + d));
//   y is the token that followed the latest earlier place with the same kContext tokens. While y is right that match goes on and its
//   length l grows; where it is wrong, or there is none, the last tokens are looked up anew and l is how far the two places agree, kLongest
//   at most. c = (hits + l / (l + 8)) / (trials + 1) over earlier matches whose length has the same power of two; 0 without a match.
// Both are O(T).
#pragma once

#include <cstdint>
#include <span>

namespace hlat {

struct RowStatistics {
  static constexpr int64_t kRepeat = 16, kContext = 4, kLongest = 32;
  double repetition = 0;
  double copy_baseline = 0;  // nats per token
};

RowStatistics row_statistics(std::span<const int32_t> row, int64_t vocab);

}  // namespace hlat
