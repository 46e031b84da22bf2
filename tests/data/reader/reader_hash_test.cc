// The content hash: steps equal the whole, every bit of the input matters, values never change.
#include <gtest/gtest.h>

#include <cmath>
#include <unordered_set>

#include "data/reader/content_hash.h"
#include "support/documents.h"

namespace hlat::reader {
namespace {

TEST(ReaderHash, StaysTheSameForEver) {
  EXPECT_EQ(hash_content(""), 2042246914583538201u);
  EXPECT_EQ(hash_content("hlat"), 15860653899795931955u);
  EXPECT_EQ(hash_content(std::string(3 << 20, 'a')), 12841522866664139247u);
}

TEST(ReaderHash, StepsEqualTheWhole) {
  const std::string text(2 * kHashPiece + 5, 'q');
  for (const size_t size : {kHashPiece - 1, kHashPiece, kHashPiece + 1, 2 * kHashPiece, text.size()}) {
    uint64_t hash = kHashStart;
    for (size_t at = 0; at < size; at += kHashPiece)
      hash = hash_piece(hash, std::string_view(text).substr(at, std::min(kHashPiece, size - at)));
    EXPECT_EQ(hash, hash_content(std::string_view(text).substr(0, size)));
  }
}

// A changed bit of the input changes each bit of the hash about every second time.
TEST(ReaderHash, EveryBitMovesAll) {
  for (const size_t size : {4, 8, 63, 64, 65, 200}) {
    std::vector<int> flips(64, 0);
    int trials = 0;
    for (uint64_t seed = 0; seed < 4000 / size + 1; ++seed) {
      std::string text;
      for (size_t i = 0; i < size; ++i) text += static_cast<char>(hash_pair(seed, i));
      const uint64_t before = hash_content(text);
      for (size_t bit = 0; bit < 8 * size; ++bit, ++trials) {
        text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
        const uint64_t moved = before ^ hash_content(text);
        text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
        for (size_t b = 0; b < 64; ++b) flips[b] += static_cast<int>(moved >> b & 1);
      }
    }
    // Half of some 32000 trials, 6 standard deviations of a fair coin.
    for (const int n : flips) EXPECT_NEAR(n, trials / 2.0, 3.0 * std::sqrt(trials)) << size << " bytes";
  }
}

TEST(ReaderHash, SimilarTextsDoNotCollide) {
  std::unordered_set<uint64_t> seen;
  size_t texts = 0;
  const auto add = [&](const std::string& text) {
    seen.insert(hash_content(text));
    ++texts;
  };
  for (int i = 0; i < 200'000; ++i) add("document " + std::to_string(i));
  for (size_t n = 0; n < 3000; ++n) add(std::string(n, '\0'));
  for (size_t at = 0; at < 300; ++at)
    for (int c = 1; c < 256; ++c) {
      std::string text(300, '\0');
      text[at] = static_cast<char>(c);
      add(text);
    }
  EXPECT_EQ(seen.size(), texts);
}

}  // namespace
}  // namespace hlat::reader
