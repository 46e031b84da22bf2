// Held-out rows: the same for any number of ranks, from held-out documents only, and the bytes of text behind them.
#include "data/held_out.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/embedded/sample_files.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

constexpr int64_t kHeldOutRows = 8, kHeldOutT = 32;

class HeldOutTest : public testing::Test {
 protected:
  HeldOutTest() {
    const EmbeddedCorpus corpus(5);
    dir.write("tokenizer.json", sample_tokenizer(corpus));
    dir.write("a.jsonl", sample_lines(corpus, 0, 200));
    config.data.tokenizer = dir.path("tokenizer.json");
    config.data.sources = {{"a", dir.path("a.jsonl"), 1, "text"}};
    config.data.validation = 0.3;
    config.model.vocab = 4096;
    config.train.seq_len = kHeldOutT;
    config.train.global_batch = 4;
  }
  test::TempDir dir;
  Config config;
};

TEST_F(HeldOutTest, RowsAndBytesDoNotDependOnTheRanks) {
  const Dataset data(config, 1);
  HeldOutRows whole(data, data.validation_sets()[0], kHeldOutRows, {.begin = 0, .count = kHeldOutRows});
  Batch all(kHeldOutRows, kHeldOutT), two(2, kHeldOutT);
  whole.read(0, all);
  for (const int64_t dp : {1, 2, 4}) {
    std::vector<int32_t> inputs, targets;
    size_t bytes = 0;
    for (int64_t r = 0; r < dp; ++r) {
      HeldOutRows own(data, data.validation_sets()[0], kHeldOutRows, part_of(kHeldOutRows, r, dp));
      EXPECT_EQ(own.rows(), kHeldOutRows / dp);
      for (int64_t first = 0; first < own.rows(); first += 2) {
        own.read(first, two);
        inputs.insert(inputs.end(), two.inputs.begin(), two.inputs.end());
        targets.insert(targets.end(), two.targets.begin(), two.targets.end());
      }
      bytes += own.target_bytes();
    }
    EXPECT_EQ(inputs, all.inputs) << dp;
    EXPECT_EQ(targets, all.targets) << dp;
    EXPECT_EQ(bytes, whole.target_bytes()) << dp;
  }
  const std::vector<int32_t> once = all.targets;
  whole.read(0, all);
  EXPECT_EQ(all.targets, once) << "every evaluation has the same rows";
  EXPECT_FALSE(whole.entropy());
}

TEST_F(HeldOutTest, BytesAreThoseOfTheTextBehindTheTargets) {
  const Dataset data(config, 1);
  const FileSource& source = *data.files()[0];
  Lanes lanes(data.validation_sets()[0].mixture, kHeldOutRows, kHeldOutT);
  Readers readers(data.validation_sets()[0].mixture);
  size_t expected = 0;
  for (int64_t r = 0; r < kHeldOutRows; ++r) {
    std::vector<int32_t> row(kHeldOutT + 1);
    std::vector<RowPart> parts;
    lanes.read_row(r, readers, row.data(), &parts);
    for (const RowPart& p : parts) {
      EXPECT_TRUE(is_validation(source.hash(p.document), 0.3));
      std::string text;
      source.read_text(p.document, text);
      std::span<const int32_t> ids(row.data() + p.begin, static_cast<size_t>(p.count));
      const std::string part = text_of(data.tokenizer(), data.special(), ids);
      EXPECT_TRUE(text.starts_with(part)) << "a row starts with a document";
      expected += p.ends ? text.size() : part.size();
    }
    expected -= data.tokenizer().decode(std::span(row).first(1)).size();  // no target
  }
  EXPECT_EQ(HeldOutRows(data, data.validation_sets()[0], kHeldOutRows, {.begin = 0, .count = kHeldOutRows}).target_bytes(), expected);
}

TEST_F(HeldOutTest, WrongUseIsRefused) {
  const Dataset data(config, 1);
  HeldOutRows rows(data, data.validation_sets()[0], kHeldOutRows, {.begin = 2, .count = 2});
  Batch one(1, kHeldOutT), longer(1, kHeldOutT + 1);
  EXPECT_THROW(rows.read(2, one), CheckFailed);
  EXPECT_THROW(rows.read(-1, one), CheckFailed);
  EXPECT_THROW(rows.read(0, longer), CheckFailed);
  EXPECT_THROW(HeldOutRows(data, data.validation_sets()[0], kHeldOutRows, {.begin = 7, .count = 2}), CheckFailed);
}

}  // namespace
}  // namespace hlat
