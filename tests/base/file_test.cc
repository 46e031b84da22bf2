// Files of records: whole ones or none, and which failures are the disk's and which the user's.
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

// A limit on the size of files, for this process, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(OutputFile, AFullDiskLeavesNoHalfRecord) {
  const test::TempDir dir;
  OutputFile file(dir.path("lines"), OutputFile::Mode::append);
  file.write("{\"step\":1}\n");
  {
    const FileSizeLimit limit(15);  // the middle of the second line
    const std::string told = message_of([&] { file.write("{\"step\":2}\n"); });
    EXPECT_NE(told.find("lines: File too large; it ends with its last whole record"), std::string::npos) << told;
  }
  EXPECT_EQ(test::slurp(dir.path("lines")), "{\"step\":1}\n");
  file.write("{\"step\":3}\n");
  EXPECT_EQ(test::slurp(dir.path("lines")), "{\"step\":1}\n{\"step\":3}\n");
}

TEST(OutputFile, AFullDiskIsAFaultAndABadPathIsTheUsers) {
  EXPECT_THROW(OutputFile("/dev/full", OutputFile::Mode::append).write("x"), DiskFull);
  EXPECT_THROW(OutputFile("/nowhere/at/all", OutputFile::Mode::append), UsageError);
  for (const int full : {ENOSPC, EDQUOT}) EXPECT_THROW(fail_storage(full, "x"), DiskFull) << full;
  for (const int disk : {EIO, ESTALE}) EXPECT_THROW(fail_storage(disk, "x"), FaultError) << disk;
  for (const int path : {EACCES, ENOENT, ENOTDIR, EROFS, EEXIST}) EXPECT_THROW(fail_storage(path, "x"), UsageError) << path;
}

TEST(OutputFile, WhatADeadProcessLeftOfALineIsCutOff) {
  const test::TempDir dir;
  for (const auto& [before, after] :
       std::vector<std::pair<std::string, std::string>>{{"one\ntwo\nth", "one\ntwo\n"}, {"one\n", "one\n"}, {"half", ""}, {"", ""}}) {
    const std::string file = dir.write("f", before);
    cut_to_whole_lines(file);
    EXPECT_EQ(test::slurp(file), after);
  }
  EXPECT_NO_THROW(cut_to_whole_lines(dir.path("none")));
}

}  // namespace
}  // namespace hlat
