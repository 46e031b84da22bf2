// The index file: where it goes, when it is used again, when it is made anew, and files that change under a reader.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "data/reader/document_file.h"
#include "data/reader/index.h"
#include "data/reader/match_files.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using Texts = std::vector<std::string>;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> found;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

std::string only_file(const std::string& folder) {
  const std::vector<std::string> found = files_in(folder);
  return found.size() == 1 ? found[0] : "not one file in " + folder;
}

const Texts kTexts = {"one", "two", "three"};

TEST(ReaderIndex, LiesBesideTheDataAndIsUsedAgain) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines(kTexts));
  open_documents(path, {});
  const std::string index = only_file(dir.path(".hlat"));
  const auto made = fs::last_write_time(index);
  EXPECT_EQ(test::read_all(*open_documents(path, {})), kTexts);
  EXPECT_EQ(fs::last_write_time(index), made);
  EXPECT_EQ(match_files(dir.path("*")), Texts{path});  // patterns do not see it
}

TEST(ReaderIndex, GoesToTheFolderAskedFor) {
  const TempDir dir;
  fs::create_directories(dir.path("x"));
  fs::create_directories(dir.path("y"));
  const ReaderOptions options{.cache_dir = dir.path("cache/deep")};
  const auto x = open_documents(dir.write("x/a.jsonl", test::json_lines({"x"})), options);
  const auto y = open_documents(dir.write("y/a.jsonl", test::json_lines({"y"})), options);
  EXPECT_EQ(files_in(dir.path("cache/deep")).size(), 2u);  // equal names do not meet
  EXPECT_FALSE(fs::exists(dir.path("x/.hlat")));
  EXPECT_EQ(test::read_all(*x), Texts{"x"});
  EXPECT_EQ(test::read_all(*y), Texts{"y"});
}

TEST(ReaderIndex, GoesToTheUsersCacheWhereTheDataCannotBeWritten) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines(kTexts));
  dir.write(".hlat", "a file where the folder would be: nobody can write there");
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string saved = before ? before : "";
  setenv("XDG_CACHE_HOME", dir.path("user").c_str(), 1);
  EXPECT_EQ(test::read_all(*open_documents(path, {})), kTexts);
  EXPECT_EQ(files_in(dir.path("user/hlat")).size(), 1u);
  if (before)
    setenv("XDG_CACHE_HOME", saved.c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
}

TEST(ReaderIndex, FieldsHaveIndicesOfTheirOwn) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", "{\"text\": \"a\", \"body\": \"b\"}\n");
  const auto text = open_documents(path, {});
  const auto body = open_documents(path, {.field = "body"});
  EXPECT_EQ(test::read_all(*text), Texts{"a"});
  EXPECT_EQ(test::read_all(*body), Texts{"b"});
  EXPECT_EQ(files_in(dir.path(".hlat")).size(), 2u);
}

TEST(ReaderIndex, IsMadeAnewWhenTheFileChanged) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines({"aaaa", "bbbb"}));
  const uint64_t fingerprint = open_documents(path, {})->fingerprint();
  const auto time = fs::last_write_time(path);
  dir.write("a.jsonl", test::json_lines({"aaaa", "cccc"}));
  fs::last_write_time(path, time);  // same size, same time: the sample tells
  const auto changed = open_documents(path, {});
  EXPECT_EQ(test::read_all(*changed), (Texts{"aaaa", "cccc"}));
  EXPECT_NE(changed->fingerprint(), fingerprint);
  dir.write("a.jsonl", test::json_lines({"aaaa", "bbbb", "cccc"}));
  EXPECT_EQ(open_documents(path, {})->documents(), 3u);
}

TEST(ReaderIndex, AVerifiedIndexIsNotHashedAgain) {
  const TempDir dir;
  DataWork work;
  for (const std::string& path :
       {dir.write("a.jsonl", test::json_lines(kTexts)), dir.write("b.jsonl.gz", test::gzip(test::json_lines(kTexts)))}) {
    EXPECT_THROW(open_documents(path, {.verified = 1}), Error) << "there is no index";
    EXPECT_TRUE(files_in(dir.path(".hlat")).empty()) << "and none is made";
    const uint64_t fingerprint = open_documents(path, {.work = &work})->fingerprint();
    const DataWork before = work;
    EXPECT_EQ(test::read_all(*open_documents(path, {.verified = fingerprint, .work = &work})), kTexts);
    EXPECT_EQ(work.files_opened, before.files_opened + 1);
    EXPECT_EQ(work.indices_hashed, before.indices_hashed);
    EXPECT_EQ(message_of([&] { open_documents(path, {.verified = fingerprint + 1}); }),
              path + " or its index is not what the process that opened it first found: it changed during start-up");
    fs::remove_all(dir.path(".hlat"));
  }
  EXPECT_EQ(work.files_scanned, 2u);
  EXPECT_EQ(work.indices_hashed, 2u);
}

TEST(ReaderIndex, FingerprintFollowsTheContentOnly) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines(kTexts));
  const uint64_t before = open_documents(path, {})->fingerprint();
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(5));
  EXPECT_EQ(open_documents(path, {})->fingerprint(), before);
  EXPECT_EQ(open_documents(dir.write("b.jsonl", test::json_lines(kTexts)), {})->fingerprint(), before);
  EXPECT_NE(open_documents(dir.write("c.jsonl", test::json_lines({"two", "one", "three"})), {})->fingerprint(), before);
}

// Every byte of the index matters: a changed one anywhere, or a missing end, and the scan runs again.
TEST(ReaderIndex, DamageIsNotTrusted) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines(kTexts) + "{bad\n");
  open_documents(path, {.bad_share = 0.5});
  const std::string index = only_file(dir.path(".hlat"));
  const std::string good = test::slurp(index);
  const auto reopened = [&](const std::string& damaged) {
    std::ofstream(index, std::ios::binary | std::ios::trunc) << damaged;
    const auto file = open_documents(path, {.bad_share = 0.5});
    return test::read_all(*file) == kTexts && file->report().bad == 1 && test::slurp(index) == good;
  };
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    ASSERT_TRUE(reopened(damaged)) << "byte " << i;
  }
  for (const size_t size : {size_t{0}, size_t{7}, sizeof(reader::IndexHeader) - 1, sizeof(reader::IndexHeader), good.size() - 1})
    ASSERT_TRUE(reopened(good.substr(0, size))) << size << " bytes";
  ASSERT_TRUE(reopened(good + "x"));
}

TEST(ReaderIndex, ManyMakeItAtOnce) {
  const TempDir dir;
  const Texts texts = test::some_documents(200);
  const std::string path = dir.write("a.jsonl", test::json_lines(texts));
  std::vector<int> wrong(8, 1);
  {
    std::vector<std::jthread> threads;
    for (int& w : wrong) threads.emplace_back([&] { w = test::read_all(*open_documents(path, {.threads = 2})) != texts; });
  }
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
  EXPECT_EQ(files_in(dir.path(".hlat")).size(), 1u);  // nothing temporary stays
}

TEST(ReaderIndex, AFailedScanLeavesNothing) {
  const TempDir dir;
  std::string content;
  for (int i = 0; i < 2000; ++i) content += "{}\n";
  const std::string path = dir.write("a.jsonl", content);
  EXPECT_THROW(open_documents(path, {.bad_share = 1.0}), Error);
  EXPECT_TRUE(files_in(dir.path(".hlat")).empty());
}

// Reads documents until the reader looks at the file again.
std::string message_of_reading(const DocumentFile& file) {
  return message_of([&] {
    std::string text;
    for (int i = 0; i < 5000; ++i) file.text(0, text);
  });
}

TEST(ReaderChanged, AFileThatIsReplacedIsNamed) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines(kTexts));
  const auto file = open_documents(path, {});
  fs::rename(dir.write("b.jsonl", test::json_lines({"four"})), path);
  EXPECT_EQ(message_of_reading(*file), path + " was changed or replaced while it was in use");
}

TEST(ReaderChanged, AFileThatIsRemovedIsNamed) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines(kTexts));
  const auto file = open_documents(path, {});
  fs::remove(path);
  EXPECT_NE(message_of_reading(*file).find(path + " is gone"), std::string::npos);
}

TEST(ReaderChanged, AFileThatIsCutIsNamed) {
  for (const char* name : {"a.jsonl", "a.txt"}) {
    const TempDir dir;
    const std::string path = dir.write(name, test::json_lines(kTexts));
    const auto file = open_documents(path, {});
    fs::resize_file(path, 10);
    EXPECT_EQ(message_of_reading(*file), path + " changed while it was in use");
    std::string part;
    EXPECT_THROW(file->text_part(0, 0, 5, part), Error);
  }
}

// Neither size nor time nor name changed: the hash of the text does not fit.
TEST(ReaderChanged, AFileThatIsOverwrittenIsNamed) {
  const TempDir dir;
  const std::string path = dir.write("a.jsonl", test::json_lines(kTexts));
  const auto file = open_documents(path, {});
  const auto time = fs::last_write_time(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(10) << 'X';
  fs::last_write_time(path, time);
  std::string text;
  EXPECT_NE(message_of([&] { file->text(0, text); }).find(path + " does not have the content"), std::string::npos);
  file->text(1, text);
  EXPECT_EQ(text, "two");
}

// What docs/data.md promises: touching, or copying a file over itself, is no change.
TEST(ReaderChanged, ATouchedFileIsTheSame) {
  const TempDir dir;
  for (const char* name : {"a.jsonl", "a.txt"}) {
    const std::string content = test::json_lines(kTexts), path = dir.write(name, content);
    const auto file = open_documents(path, {});
    fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(5));
    EXPECT_EQ(message_of_reading(*file), "no exception");
    std::string part;
    file->text_part(0, 0, 3, part);
    EXPECT_EQ(part.size(), 3u);
    fs::rename(dir.write("copy", content), path);
    EXPECT_EQ(message_of_reading(*file), "no exception");
    file->text_part(0, 0, 3, part);
  }
}

// Neither its size nor the sampled bytes tell, and a part has no hash: the whole text is looked at once more.
TEST(ReaderChanged, ATouchedTextWithOtherContentIsNamed) {
  const TempDir dir;
  const std::string path = dir.write("a.txt", std::string(1 << 20, 'a'));
  const auto file = open_documents(path, {});
  std::string part;
  file->text_part(0, 0, 100, part);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(80'000) << 'X';
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(5));
  EXPECT_NE(message_of([&] { file->text_part(0, 79'990, 100, part); }).find(path + " does not have the content"), std::string::npos);
}

TEST(ReaderOpen, NamesWhatItCannotOpen) {
  const TempDir dir;
  EXPECT_NE(message_of([&] { open_documents(dir.path("none.jsonl"), {}); }).find(dir.path("none.jsonl")), std::string::npos);
  EXPECT_THROW(open_documents(dir.path("a.csv"), {}), UsageError);
  EXPECT_NE(message_of([&] { open_documents(dir.path("a.csv"), {}); }).find(".jsonl"), std::string::npos);
  fs::create_directory(dir.path("d.jsonl"));
  EXPECT_NE(message_of([&] { open_documents(dir.path("d.jsonl"), {}); }).find("not a regular file"), std::string::npos);
  ASSERT_EQ(mkfifo(dir.path("p.jsonl").c_str(), 0600), 0);
  EXPECT_NE(message_of([&] { open_documents(dir.path("p.jsonl"), {}); }).find("not a regular file"), std::string::npos);
}

TEST(ReaderOpen, MatchesPatternsSorted) {
  const TempDir dir;
  for (const char* name : {"b.jsonl", "a.jsonl", "c.txt", "a10.jsonl"}) dir.write(name, "");
  EXPECT_EQ(match_files(dir.path("*.jsonl")), (Texts{dir.path("a.jsonl"), dir.path("a10.jsonl"), dir.path("b.jsonl")}));
  EXPECT_EQ(match_files(dir.path("c.txt")), Texts{dir.path("c.txt")});
  EXPECT_EQ(match_files(dir.path("{c,b}.*")), (Texts{dir.path("b.jsonl"), dir.path("c.txt")}));
  EXPECT_EQ(match_files(dir.write("a[1].txt", "")), Texts{dir.path("a[1].txt")});
  EXPECT_EQ(message_of([&] { match_files(dir.path("*.zst")); }), "no file matches " + dir.path("*.zst"));
  EXPECT_EQ(message_of([&] { match_files(dir.path("none/*.zst")); }),
            "no file matches " + dir.path("none/*.zst") + "; there is no folder " + dir.path("none"));
  EXPECT_EQ(message_of([&] { match_files(dir.path("c.text")); }),
            "no file matches " + dir.path("c.text") + "; did you mean " + dir.path("c.txt?"));
}

TEST(ReaderOpen, BracesWithoutACommaAreANamesOwn) {
  const TempDir dir;
  fs::create_directories(dir.path("{d}"));
  for (const char* name : {"{d}/a.txt", "{d}/z.txt", "{d}/b.txt", "{xa}.txt"}) dir.write(name, "");
  EXPECT_EQ(match_files(dir.path("{d}/{a,z}.txt")), (Texts{dir.path("{d}/a.txt"), dir.path("{d}/z.txt")}));
  EXPECT_EQ(match_files(dir.path("{x{a,b}}.*")), Texts{dir.path("{xa}.txt")});
}

TEST(ReaderOpen, TwoStarsAreAnyDepthOfFolders) {
  const TempDir dir;
  fs::create_directories(dir.path("d/x/y"));
  fs::create_directories(dir.path("d/.hidden"));
  for (const char* name : {"d/a.jsonl", "d/x/b.jsonl", "d/x/y/c.jsonl", "d/x/y/c.txt", "d/.hidden/h.jsonl"}) dir.write(name, "");
  fs::create_directory_symlink(dir.path("d"), dir.path("d/x/loop"));
  EXPECT_EQ(match_files(dir.path("d/**/*.jsonl")), (Texts{dir.path("d/a.jsonl"), dir.path("d/x/b.jsonl"), dir.path("d/x/y/c.jsonl")}));
  EXPECT_EQ(match_files(dir.path("**/y/*.jsonl")), Texts{dir.path("d/x/y/c.jsonl")});
  EXPECT_EQ(match_files(dir.path("d/**/y/**")), (Texts{dir.path("d/x/y/c.jsonl"), dir.path("d/x/y/c.txt")}));
  EXPECT_EQ(match_files(dir.path("d/*.jsonl")), Texts{dir.path("d/a.jsonl")});
  fs::create_directory_symlink(dir.path("d/x"), dir.path("d/x/y/link"));
  EXPECT_EQ(match_files(dir.path("d/x/y/**")), (Texts{dir.path("d/x/y/c.jsonl"), dir.path("d/x/y/c.txt")}));
}

TEST(ReaderOpen, AFolderIsAllDataFilesBelowIt) {
  const TempDir dir;
  fs::create_directories(dir.path("d/x"));
  for (const char* name : {"d/b.jsonl", "d/x/a.txt.gz", "d/README.md", "d/.z.jsonl"}) dir.write(name, "");
  for (const char* path : {"d", "d/"}) {
    const FoundFiles found = find_files(dir.path(path));
    ASSERT_EQ(found.files.size(), 2u);
    EXPECT_EQ(fs::path(found.files[0].path).lexically_normal(), dir.path("d/b.jsonl"));
    ASSERT_EQ(found.remarks.size(), 1u);
    EXPECT_NE(found.remarks[0].find("README.md"), std::string::npos);
  }
  fs::create_directory(dir.path("none"));
  EXPECT_EQ(message_of([&] { match_files(dir.path("none")); }), "no file matches " + dir.path("none"));
}

TEST(ReaderOpen, ATildeIsTheHomeFolder) {
  const TempDir dir;
  dir.write("a.jsonl", "");
  const char* before = std::getenv("HOME");
  const std::string saved = before ? before : "";
  setenv("HOME", dir.path("").c_str(), 1);
  const std::vector<std::string> found = match_files("~/*.jsonl");
  const std::string text = message_of([&] { match_files("~/none/*.jsonl"); });
  if (before)
    setenv("HOME", saved.c_str(), 1);
  else
    unsetenv("HOME");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(fs::path(found[0]).lexically_normal(), dir.path("a.jsonl"));
  const std::string hint = "no file matches ~/none/*.jsonl; there is no folder ";
  ASSERT_TRUE(text.starts_with(hint)) << text;
  EXPECT_EQ(fs::path(text.substr(hint.size())).lexically_normal(), dir.path("none")) << "the home folder is there";
}

TEST(ReaderOpen, AFolderThatCannotBeReadSaysWhy) {
  const TempDir dir;
  fs::create_symlink("loop", dir.path("loop"));
  const std::string text = message_of([&] { match_files(dir.path("l*p/*.jsonl")); });
  EXPECT_EQ(text, "cannot look into the folder " + dir.path("loop/") + ": Too many levels of symbolic links");
  EXPECT_THROW(match_files(dir.path("loop/*.jsonl")), UsageError);
}

}  // namespace
}  // namespace hlat
