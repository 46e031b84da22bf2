// The documents of a batch are those its rows were made of, wherever the loader has gone meanwhile.
#include "data/batch_documents.h"

#include <gtest/gtest.h>

#include "data/train_batches.h"
#include "support/memory_source.h"

namespace hlat {
namespace {

constexpr int64_t kNamedLanes = 4, kNamedT = 31;

struct TwoSources {
  MemorySource web{"web", {.documents = 200}};
  MemorySource books{"books", {.documents = 30, .first_token = 1'000'000, .longest = 90}};
  Mixture mixture() const { return {.sources = {&web, &books}, .names = {"web", "books"}, .segments = {{1, {0.5, 0.5}}}, .seed = 4}; }
  static DataIdentity identity() {
    return {.tokenizer = 1, .eos = 2, .bos = -1, .seed = 4, .validation = 0, .lanes = kNamedLanes, .seq_len = kNamedT};
  }
};

TEST(BatchDocuments, AreThoseOfTheRows) {
  const TwoSources data;
  TrainBatches batches(TwoSources::identity(), data.mixture(), {.begin = 1, .count = 2}, {.workers = 2, .prefetch = 3});
  for (int step = 1; step <= 20; ++step) {
    Batch batch(2, kNamedT);
    batches.read(0, batch);
    const BatchDocuments found = batches.documents();
    EXPECT_EQ(found.count, found.first.size());
    std::vector<int32_t> tokens;  // of all stretches, one after the other
    for (const BatchDocument& d : found.first) {
      const MemorySource& source = d.source == "web" ? data.web : data.books;
      EXPECT_EQ(d.file, d.source);
      const std::vector<int32_t> all = source.tokens(d.document);
      const auto first = static_cast<std::ptrdiff_t>(d.byte + d.token);  // a place in this source is a token
      ASSERT_LE(first + d.tokens, static_cast<std::ptrdiff_t>(all.size()));
      tokens.insert(tokens.end(), all.begin() + first, all.begin() + first + d.tokens);
      EXPECT_TRUE(d.row == 1 || d.row == 2);
    }
    std::vector<int32_t> wanted;
    for (int64_t r = 0; r < 2; ++r) {
      wanted.insert(wanted.end(), batch.inputs.begin() + r * kNamedT, batch.inputs.begin() + (r + 1) * kNamedT);
      wanted.push_back(batch.targets[static_cast<size_t>((r + 1) * kNamedT - 1)]);
    }
    EXPECT_EQ(tokens, wanted) << "step " << step;
  }
}

TEST(BatchDocuments, TheFirstAreToldAndAllAreCounted) {
  const TwoSources data;
  TrainBatches batches(TwoSources::identity(), data.mixture(), {.begin = 0, .count = kNamedLanes}, {});
  Batch batch(kNamedLanes, kNamedT);
  batches.read(0, batch);
  const BatchDocuments all = batches.documents();
  ASSERT_GT(all.count, 3u);
  const TrainData fresh(TwoSources::identity(), data.mixture());
  std::vector<LaneState> states;
  const Lanes lanes = fresh.lanes();
  for (int64_t l = 0; l < kNamedLanes; ++l) states.push_back(lanes.state(l));
  const BatchDocuments few = documents_of(fresh.mixture(), kNamedLanes, kNamedT, 0, states, 3);
  EXPECT_EQ(few.count, all.count);
  EXPECT_EQ(few.first, std::vector(all.first.begin(), all.first.begin() + 3));
}

}  // namespace
}  // namespace hlat
