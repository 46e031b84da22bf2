// Many files: one index for the small ones, few descriptors and mappings, files that come, go and change.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "data/reader/open_all.h"
#include "data/reader/open_files.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using Texts = std::vector<std::string>;

constexpr int kFiles = 200;

class ReaderMany : public testing::Test {
 protected:
  ReaderMany() {
    fs::create_directories(dir.path("d/x"));
    for (int i = 0; i < kFiles; ++i) write(i, "text " + std::to_string(i));
  }
  static std::string name(int i) { return (i % 2 == 0 ? "d/f" : "d/x/f") + std::to_string(i) + (i % 3 == 0 ? ".jsonl.gz" : ".jsonl"); }
  void write(int i, const std::string& text) const {
    const std::string lines = test::json_lines({text, "second of " + std::to_string(i)});
    dir.write(name(i), i % 3 == 0 ? test::gzip(lines) : lines);
  }
  std::vector<std::unique_ptr<DocumentFile>> open(ReaderOptions options = {}, std::span<const uint64_t> verified = {}) {
    options.work = &(work = {});
    return open_all({.name = "s", .pattern = dir.path("d"), .files = find_files(dir.path("d")).files, .verified = verified}, options);
  }
  static Texts texts_of(const std::vector<std::unique_ptr<DocumentFile>>& files) {
    Texts all;
    for (const auto& f : files)
      for (std::string& t : test::read_all(*f)) all.push_back(std::move(t));
    return all;
  }
  int indices() const {
    int count = 0;
    for (const auto& e : fs::recursive_directory_iterator(dir.path("d"))) count += e.path().extension() == ".idx" ? 1 : 0;
    return count;
  }

  TempDir dir;
  DataWork work;
};

TEST_F(ReaderMany, SmallFilesShareOneIndex) {
  Texts expected;
  for (const FoundFile& f : find_files(dir.path("d")).files) {
    const std::string stem = fs::path(f.path).filename().string(), number = stem.substr(1, stem.find('.') - 1);
    expected.push_back("text " + number), expected.push_back("second of " + number);
  }
  EXPECT_TRUE(texts_of(open({.threads = 3})) == expected);
  EXPECT_EQ(work.files_scanned, uint64_t{kFiles});
  EXPECT_EQ(indices(), 1);
  EXPECT_TRUE(texts_of(open({.threads = 2})) == expected);
  EXPECT_EQ(work.files_scanned, 0u);
  EXPECT_EQ(work.files_opened, uint64_t{kFiles});
}

TEST_F(ReaderMany, OnlyWhatChangedIsScannedAgain) {
  const Texts before = texts_of(open());
  write(7, "another text");
  dir.write("d/new.jsonl", test::json_lines({"new"}));
  fs::remove(dir.path(name(4)));
  const Texts after = texts_of(open());
  EXPECT_EQ(work.files_scanned, 2u);
  EXPECT_EQ(after.size(), before.size() - 2 + 1);
  EXPECT_EQ(std::count(after.begin(), after.end(), "another text"), 1);
  EXPECT_EQ(std::count(after.begin(), after.end(), "new"), 1);
  EXPECT_EQ(indices(), 1);
  // Same size, and the time set back: what nobody can set back tells.
  const auto time = fs::last_write_time(dir.path(name(8)));
  write(8, "tEXT 8");
  fs::last_write_time(dir.path(name(8)), time);
  EXPECT_EQ(std::count_if(before.begin(), before.end(), [](const std::string& t) { return t == "text 8"; }), 1);
  const Texts third = texts_of(open());
  EXPECT_EQ(std::count(third.begin(), third.end(), "tEXT 8"), 1);
  EXPECT_EQ(work.files_scanned, 1u);
}

TEST_F(ReaderMany, FewDescriptorsAndMappingsAreEnoughForManyThreads) {
  fs::create_directories(dir.path("own"));
  for (int i = 0; i < 4; ++i)
    dir.write("own/" + std::to_string(i) + ".jsonl.gz", test::gzip(test::json_lines({"a", "b" + std::to_string(i)})));
  const auto few = std::make_shared<reader::OpenFiles>(3, 1);
  const auto files = open({.files = few});
  std::vector<std::unique_ptr<DocumentFile>> own;  // with indices of their own, which get no mapping
  for (int i = 0; i < 4; ++i) own.push_back(open_documents(dir.path("own/" + std::to_string(i) + ".jsonl.gz"), {.files = few}));
  const Texts expected = texts_of(files);
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        std::string text;
        for (size_t i = 0; i < 2000; ++i) {
          const size_t at = (i * 7919 + t * 31) % expected.size();
          files[at / 2]->text(at % 2, text);
          wrong[t] += text != expected[at];
          own[i % 4]->text(1, text);
          wrong[t] += text != "b" + std::to_string(i % 4);
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_LE(few->open_now(), 3u);
}

TEST_F(ReaderMany, ADamagedIndexIsMadeAnew) {
  const Texts expected = texts_of(open());
  std::string index;
  for (const auto& e : fs::directory_iterator(dir.path("d/.hlat"))) index = e.path().string();
  const std::string good = test::slurp(index);
  for (size_t i = 0; i < good.size(); i += 997) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    std::ofstream(index, std::ios::binary | std::ios::trunc) << damaged;
    // Compressed text has a checksum of its own, which is looked at when it is read.
    Texts texts;
    const std::string message = message_of([&] { texts = texts_of(open()); });
    ASSERT_TRUE(texts == expected || message.find("is damaged at byte") != std::string::npos) << "byte " << i << ": " << message;
  }
  std::ofstream(index, std::ios::binary | std::ios::trunc) << good.substr(0, good.size() / 2);
  EXPECT_TRUE(texts_of(open()) == expected);
}

TEST_F(ReaderMany, OtherProcessesVerifyWithoutHashing) {
  std::vector<uint64_t> fingerprints;
  for (const auto& f : open()) fingerprints.push_back(f->fingerprint());
  open({}, fingerprints);
  EXPECT_EQ(work.indices_hashed, 0u);
  EXPECT_EQ(work.files_scanned, 0u);
  write(7, "another text");
  EXPECT_NE(message_of([&] { open({}, fingerprints); }).find("changed during start-up"), std::string::npos);
  EXPECT_EQ(work.files_scanned, 0u);
}

// The leading process left the first place as it was: it could not write there.
TEST_F(ReaderMany, OtherProcessesLookAtEveryPlaceOfTheIndex) {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string saved = before ? before : "";
  setenv("XDG_CACHE_HOME", dir.path("user").c_str(), 1);
  open();
  fs::rename(dir.path("d/.hlat"), dir.path("stale"));
  write(7, "another text");
  dir.write("d/.hlat", "a file where the folder would be: nobody can write there");
  std::vector<uint64_t> fingerprints;
  for (const auto& f : open()) fingerprints.push_back(f->fingerprint());
  fs::remove(dir.path("d/.hlat"));
  fs::rename(dir.path("stale"), dir.path("d/.hlat"));
  EXPECT_EQ(open({}, fingerprints).size(), fingerprints.size());
  EXPECT_EQ(work.files_scanned, 0u);
  write(9, "a third text");
  const std::string message = message_of([&] { open({}, fingerprints); });
  EXPECT_NE(message.find("changed during start-up"), std::string::npos) << message;
  EXPECT_NE(message.find(dir.path(name(9))), std::string::npos) << message;
  if (before)
    setenv("XDG_CACHE_HOME", saved.c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
}

TEST_F(ReaderMany, IndicesBelowTheDataAreNoData) {
  const auto before = match_files(dir.path("d"));
  open({.cache_dir = dir.path("d/cache")});
  open_documents(dir.path(name(2)), {.cache_dir = dir.path("d/cache")});
  EXPECT_EQ(indices(), 2);
  EXPECT_EQ(match_files(dir.path("d")), before);
  EXPECT_EQ(match_files(dir.path("d/**")), before);
  open({.cache_dir = dir.path("d/cache")});
  EXPECT_EQ(work.files_scanned, 0u);
}

TEST_F(ReaderMany, TheFirstBadFileIsNamedAndProgressIsTold) {
  dir.write("d/f100.jsonl", "{\n{\n{\n{\n");
  dir.write("d/z.jsonl", "{\n{\n{\n{\n");
  const std::string message = message_of([&] { open({.threads = 3}); });
  EXPECT_NE(message.find(dir.path("d/f100.jsonl") + ": 4 of 4"), std::string::npos) << message;
  fs::remove_all(dir.path("d/.hlat"));
  ScanProgress last;
  open_all({.name = "s",
            .pattern = dir.path("d"),
            .files = find_files(dir.path("d")).files,
            .verified = {},
            .observer = [&](const ScanProgress& p) { last = p; }},
           {.bad_share = 1});
  EXPECT_EQ(last.files, last.all_files);
  EXPECT_EQ(last.bytes, last.all_bytes);
  EXPECT_GE(last.files, uint64_t{kFiles});
}

}  // namespace
}  // namespace hlat
