// Rows that come again: within a batch, from one measured step to the next, and on another rank.
#include "train/repeated_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/self_comm.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

// Rows of four tokens that begin with these.
Batch rows_with(const std::vector<int32_t>& first) {
  Batch b(static_cast<int64_t>(first.size()), 4);
  for (int64_t r = 0; r < b.rows; ++r) {
    const std::vector<int32_t> tokens = {first[static_cast<size_t>(r)], 2, 3, 4, 5};
    b.set_row(r, tokens.data());
  }
  return b;
}

int64_t repeated_in(RepeatedRows& rows, Comm& dp, const std::vector<std::vector<int32_t>>& micro_batches) {
  rows.begin();
  for (const auto& first : micro_batches) rows.add(rows_with(first));
  return rows.count(dp);
}

TEST(RepeatedRows, AreCountedInTheBatchAndInTheOneBefore) {
  SelfComm one;
  RepeatedRows rows;
  EXPECT_EQ(repeated_in(rows, one, {{1, 2}, {3, 4}}), 0);
  EXPECT_EQ(repeated_in(rows, one, {{5, 5}, {6, 5}}), 2);
  EXPECT_EQ(repeated_in(rows, one, {{5, 7}, {8, 9}}), 1) << "5 was there in the step before";
  EXPECT_EQ(repeated_in(rows, one, {{7, 9}, {8, 5}}), 4) << "all were";
  EXPECT_EQ(repeated_in(rows, one, {{1, 2}, {3, 4}}), 0) << "two steps before is forgotten";
}

TEST(RepeatedRows, RanksThatReadTheSameRowsAreSeenOnAll) {
  run_thread_ranks(3, [](Comm& world) {
    RepeatedRows rows;
    const int32_t own = world.rank();
    EXPECT_EQ(repeated_in(rows, world, {{own, 10 + own}}), 0);
    EXPECT_EQ(repeated_in(rows, world, {{20, 30 + own}}), 2);
  });
}

}  // namespace
}  // namespace hlat
