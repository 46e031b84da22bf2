// Slices of global tensors: local places of their parts, and the global elements of flat ranges of local ones.
#include "parallel/slice.h"

#include <gtest/gtest.h>

namespace hlat {
namespace {

// Global elements of local elements [begin, end), run by run.
std::vector<std::vector<int64_t>> elements(const Slice& slice, int64_t begin, int64_t end) {
  std::vector<std::vector<int64_t>> runs;
  for (const FlatRun& run : slice.flat_runs(begin, end)) {
    runs.emplace_back();
    for (int64_t e = run.begin; e < run.end; ++e) runs.back().push_back(run.map.global(e - run.begin));
  }
  return runs;
}

using Runs = std::vector<std::vector<int64_t>>;

TEST(Slice, OfRowsHasARunForEachPart) {
  const Slice slice = Slice::of({10, 2}, 0, {{.global = 1, .count = 2}, {.global = 7, .count = 1}});
  EXPECT_EQ(slice.local(), (Shape{3, 2}));
  EXPECT_EQ(slice.parts[1].local, 2);
  EXPECT_EQ(elements(slice, 0, 6), (Runs{{2, 3, 4, 5}, {14, 15}}));
  EXPECT_EQ(elements(slice, 3, 5), (Runs{{5}, {14}}));  // an optimizer shard need not end between rows
  EXPECT_EQ(elements(slice, 4, 4), Runs{});
}

TEST(Slice, OfColumnsIsOneRun) {
  const Slice slice = Slice::of({3, 5}, 1, {{.global = 2, .count = 2}});
  EXPECT_EQ(slice.local(), (Shape{3, 2}));
  EXPECT_EQ(elements(slice, 0, 6), (Runs{{2, 3, 7, 8, 12, 13}}));
  EXPECT_EQ(elements(slice, 3, 5), (Runs{{8, 12}}));
}

TEST(Slice, WholeIsTheTensor) {
  EXPECT_EQ(Slice::whole({4}).local(), (Shape{4}));
  EXPECT_EQ(elements(Slice::whole({4}), 1, 4), (Runs{{1, 2, 3}}));
}

TEST(Slice, RefusesWhatIsOutside) {
  EXPECT_THROW(Slice::of({4, 2}, 0, {{.global = 3, .count = 2}}), CheckFailed);
  EXPECT_THROW(Slice::of({4, 2}, 2, {{.global = 0, .count = 1}}), CheckFailed);
  EXPECT_THROW(Slice::of({4, 4}, 1, {{.global = 0, .count = 1}, {.global = 2, .count = 1}}), CheckFailed);
  EXPECT_THROW(Slice::whole({4, 2}).flat_runs(3, 9), CheckFailed);
}

}  // namespace
}  // namespace hlat
