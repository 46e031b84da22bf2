// Megatron .bin/.idx pairs: every type of ids, documents of several sequences, and pairs that are broken.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "data/reader/document_file.h"
#include "data/reader/match_files.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using Tokens = std::vector<int32_t>;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Pair {
  std::string bin;
  std::vector<int32_t> lengths;
  std::vector<int64_t> pointers;
  std::vector<int64_t> firsts{0};
  uint8_t type = 0;
  uint64_t version = 1;

  std::string idx() const {
    std::string out("MMIDIDX\0\0", 9);
    put(out, version);
    put(out, type);
    put(out, uint64_t{lengths.size()});
    put(out, uint64_t{firsts.size()});
    for (const int32_t n : lengths) put(out, n);
    for (const int64_t n : pointers) put(out, n);
    for (const int64_t n : firsts) put(out, n);
    return out;
  }
  std::string write(const TempDir& dir) const {
    dir.write("a.idx", idx());
    return dir.write("a.bin", bin);
  }
};

// Each document is cut into `sequences` sequences.
template <class T>
Pair make_pair_of(const std::vector<Tokens>& documents, uint8_t type, size_t sequences = 1) {
  Pair pair;
  pair.type = type;
  for (const Tokens& tokens : documents) {
    for (size_t s = 0; s < sequences; ++s) {
      const size_t begin = tokens.size() * s / sequences;
      const size_t end = tokens.size() * (s + 1) / sequences;
      pair.pointers.push_back(static_cast<int64_t>(pair.bin.size()));
      pair.lengths.push_back(static_cast<int32_t>(end - begin));
      for (size_t i = begin; i < end; ++i) put(pair.bin, static_cast<T>(tokens[i]));
    }
    pair.firsts.push_back(static_cast<int64_t>(pair.lengths.size()));
  }
  return pair;
}

std::vector<Tokens> some_tokens(size_t count, int32_t below) {
  std::vector<Tokens> documents(count);
  for (size_t d = 0; d < count; ++d)
    for (size_t i = 0; i < d % 97; ++i) documents[d].push_back(static_cast<int32_t>((d * 31 + i * 7) % static_cast<size_t>(below)));
  return documents;
}

std::vector<Tokens> read_tokens(const DocumentFile& file) {
  std::vector<Tokens> documents(file.documents());
  for (size_t d = 0; d < documents.size(); ++d) file.tokens(d, documents[d]);
  return documents;
}

TEST(ReaderMegatron, ReadsEveryTypeOfIds) {
  const std::vector<Tokens> documents = some_tokens(10'000, 127);
  std::vector<uint64_t> hashes;
  for (const Pair& pair :
       {make_pair_of<uint8_t>(documents, 1), make_pair_of<int8_t>(documents, 2), make_pair_of<int16_t>(documents, 3),
        make_pair_of<int32_t>(documents, 4, 3), make_pair_of<int64_t>(documents, 5), make_pair_of<uint16_t>(documents, 8, 2)}) {
    const TempDir dir;
    const std::string path = pair.write(dir);
    const auto file = open_documents(path, {.threads = 2});
    EXPECT_TRUE(file->tokenized());
    EXPECT_TRUE(read_tokens(*file) == documents) << "type " << int{pair.type};
    EXPECT_EQ(file->length(50), documents[50].size());
    EXPECT_EQ(file->report().bad, 0u);
    if (hashes.empty()) hashes = test::all_hashes(*file);
    EXPECT_EQ(test::all_hashes(*file), hashes);  // whatever the type
  }
}

TEST(ReaderMegatron, EitherNameOpensThePairAndPatternsCountItOnce) {
  const TempDir dir;
  const std::vector<Tokens> documents = some_tokens(20, 1000);
  const std::string path = make_pair_of<uint16_t>(documents, 8).write(dir);
  EXPECT_EQ(read_tokens(*open_documents(dir.path("a.idx"), {})), documents);
  EXPECT_EQ(match_files(dir.path("a*")), std::vector<std::string>{path});
  EXPECT_EQ(match_files(dir.path("*.idx")), std::vector<std::string>{dir.path("a.idx")});
}

TEST(ReaderMegatron, AnIdxWithoutItsBinIsLeftOutOfFoldersAndPatterns) {
  const TempDir dir;
  const std::string path = make_pair_of<uint16_t>(some_tokens(20, 1000), 8).write(dir);
  dir.write("b.idx", "");
  for (const std::string& where : {dir.path(), dir.path("*")}) {
    const FoundFiles found = find_files(where);
    ASSERT_EQ(found.files.size(), 1u);
    EXPECT_EQ(fs::path(found.files[0].path), path);
    ASSERT_EQ(found.remarks.size(), 1u);
    EXPECT_NE(found.remarks[0].find("b.idx"), std::string::npos);
  }
  EXPECT_NE(message_of([&] { match_files(dir.path("b*")); }).find("without the .bin"), std::string::npos);
  EXPECT_EQ(match_files(dir.path("b.idx")).size(), 1u) << "who names it is told when it is opened";
}

TEST(ReaderMegatron, PartsOfDocuments) {
  const TempDir dir;
  const std::vector<Tokens> documents = some_tokens(97, 120);
  const Pair pair = make_pair_of<uint16_t>(documents, 8);
  const std::string path = pair.write(dir);
  const auto file = open_documents(path, {});
  Tokens part;
  for (size_t d = 0; d < documents.size(); d += 8)
    for (const size_t begin : {size_t{0}, size_t{1}, d / 2, d, d + 3})
      for (const size_t count : {size_t{0}, size_t{5}, size_t{1000}}) {
        file->tokens_part(d, begin, count, part);
        const auto from = documents[d].begin() + static_cast<std::ptrdiff_t>(std::min(begin, d));
        EXPECT_EQ(part, Tokens(from, from + static_cast<std::ptrdiff_t>(std::min(count, d - std::min(begin, d)))));
      }
  std::string changed = pair.bin;
  changed.back() ^= 1;
  dir.write("a.bin", changed);
  EXPECT_THROW(file->tokens_part(96, 0, 5, part), Error) << "of a document that changed elsewhere";
}

TEST(ReaderMegatron, LargeIdsAreKept) {
  const TempDir dir;
  const std::vector<Tokens> documents = {{65535, 0, 1}, {2147483647}};
  EXPECT_EQ(read_tokens(*open_documents(make_pair_of<int64_t>(documents, 5).write(dir), {})), documents);
  EXPECT_EQ(read_tokens(*open_documents(make_pair_of<uint16_t>({{65535}}, 8).write(dir), {})), (std::vector<Tokens>{{65535}}));
}

std::string reason_of(const Pair& pair) {
  const TempDir dir;
  const FileReport report = open_documents(pair.write(dir), {.bad_share = 0.5})->report();
  if (report.bad != 1 || report.documents != 2 || report.examples.at(0).line != 2) return "not one bad document";
  return report.examples[0].reason;
}

TEST(ReaderMegatron, BadDocumentsAreCounted) {
  const std::vector<Tokens> documents = {{1, 2}, {3, 4, 5, 6}, {7}};
  Pair pair = make_pair_of<int32_t>({{1, 2}, {3, -4, 5, 6}, {7}}, 4);
  EXPECT_EQ(reason_of(pair), "-4 is not a token id");
  pair = make_pair_of<int32_t>(documents, 4);
  pair.lengths[1] = -1;
  EXPECT_EQ(reason_of(pair), "a sequence of -1 tokens");
  pair = make_pair_of<int32_t>(documents, 4);
  pair.pointers[1] = 26;
  EXPECT_NE(reason_of(pair).find("reaches beyond the 28 bytes"), std::string::npos);
  pair.pointers[1] = -8;
  EXPECT_NE(reason_of(pair).find("reaches beyond the 28 bytes"), std::string::npos);
  pair = make_pair_of<int32_t>(documents, 4, 2);
  pair.pointers[3] += 4;
  EXPECT_EQ(reason_of(pair), "its sequences are not one behind the other");
}

TEST(ReaderMegatron, NamesFilesThatAreNotAPair) {
  const TempDir dir;
  const Pair good = make_pair_of<int32_t>({{1, 2}, {3}}, 4);
  const auto message = [&](const std::string& idx) {
    const std::string path = good.write(dir);
    dir.write("a.idx", idx);
    return message_of([&] { open_documents(path, {}); });
  };
  EXPECT_EQ(message("x"), dir.path("a.idx") + " is not a Megatron index");
  EXPECT_NE(message(good.idx().substr(0, good.idx().size() - 1)).find("a.idx is cut short"), std::string::npos);
  Pair other = good;
  other.version = 2;
  EXPECT_NE(message(other.idx()).find("has version 2"), std::string::npos);
  other = good;
  other.type = 6;
  EXPECT_NE(message(other.idx()).find("ids of type 6"), std::string::npos);
  fs::remove(dir.path("a.idx"));
  EXPECT_NE(message_of([&] { open_documents(dir.path("a.bin"), {}); }).find("cannot open " + dir.path("a.idx")), std::string::npos);
}

TEST(ReaderMegatron, AChangedIdxMakesTheIndexAnew) {
  const TempDir dir;
  Pair pair = make_pair_of<int32_t>({{1, 2}, {3}}, 4);
  const std::string path = pair.write(dir);
  EXPECT_EQ(open_documents(path, {})->documents(), 2u);
  pair.firsts = {0, 2};
  dir.write("a.idx", pair.idx());
  EXPECT_EQ(read_tokens(*open_documents(path, {})), (std::vector<Tokens>{{1, 2, 3}}));
}

TEST(ReaderMegatron, ABinWithMoreThanItsIdxSaysIsRefused) {
  const TempDir dir;
  Pair pair = make_pair_of<int32_t>({{1, 2}, {3}}, 4);
  pair.bin += std::string(4, '\0');
  const std::string path = pair.write(dir);
  EXPECT_THROW(open_documents(path, {}), UsageError);
  EXPECT_EQ(message_of([&] { open_documents(path, {}); }),
            path + " and " + dir.path("a.idx") +
                " do not belong together: the first has 16 bytes, and the sequences of the second end at byte 12");
}

TEST(ReaderMegatron, ACutBinIsBroken) {
  const TempDir dir;
  Pair pair = make_pair_of<int32_t>({{1, 2}, {3}, {4}}, 4);
  pair.bin.resize(8);
  const std::string path = pair.write(dir);
  EXPECT_NE(message_of([&] { open_documents(path, {}); }).find("8 of them (50.0%) are lost"), std::string::npos);
  EXPECT_EQ(read_tokens(*open_documents(path, {.allow_broken = true})), (std::vector<Tokens>{{1, 2}}));
}

TEST(ReaderMegatron, NoDocumentsIsReported) {
  const TempDir dir;
  EXPECT_EQ(open_documents(make_pair_of<int32_t>({}, 4).write(dir), {})->report().bad, 1u);
}

}  // namespace
}  // namespace hlat
