// Very long lines, plain and compressed: half a gigabyte is a document, more than the limit is bad, and what stands around is read.
#include <gtest/gtest.h>

#include <fstream>

#include "data/reader/document_file.h"
#include "data/reader/index.h"
#include "support/documents.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

// {"text": "first"} / {"text": "xxx..."} of `length` / {"text": "last"}
template <class Put>
void write_lines(uint64_t length, const Put& put) {
  const std::string piece(1 << 20, 'x');
  put("{\"text\": \"first\"}\n{\"text\": \"");
  for (uint64_t done = 0; done < length; done += piece.size()) put(piece);
  put("\"}\n{\"text\": \"last\"}\n");
}

std::string make_file(const test::TempDir& dir, const std::string& name, uint64_t length) {
  const std::string path = dir.path(name);
  std::ofstream file(path, std::ios::binary);
  write_lines(length, [&](const std::string& piece) { file << (name.ends_with(".zst") ? test::zstd(piece) : piece); });
  return path;
}

class ReaderLong : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Formats, ReaderLong, testing::Values("a.jsonl", "a.jsonl.zst"),
                         [](const auto& name) { return name.param.ends_with("zst") ? "zst" : "plain"; });

TEST_P(ReaderLong, HalfAGigabyteIsADocument) {
  const test::TempDir dir;
  const uint64_t length = uint64_t{500} << 20;
  const auto file = open_documents(make_file(dir, GetParam(), length), {.threads = 2});
  ASSERT_EQ(file->documents(), 3u);
  EXPECT_EQ(file->length(1), length);
  std::string text;
  file->text(1, text);
  EXPECT_EQ(text.size(), length);
  EXPECT_EQ(text.find_first_not_of('x'), std::string::npos);
  file->text(2, text);
  EXPECT_EQ(text, "last");
}

TEST_P(ReaderLong, MoreThanTheLimitIsBad) {
  const test::TempDir dir;
  const auto file = open_documents(make_file(dir, GetParam(), reader::kMaxDocument + (64 << 20)), {.bad_share = 1, .threads = 2});
  EXPECT_EQ(test::read_all(*file), (std::vector<std::string>{"first", "last"}));
  ASSERT_EQ(file->report().bad, 1u);
  EXPECT_EQ(file->report().examples[0].line, 2u);
  EXPECT_EQ(file->report().examples[0].reason, "longer than 1073741824 bytes");
}

}  // namespace
}  // namespace hlat
