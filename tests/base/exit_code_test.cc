// The table of exit codes: each kind of error has its number.
#include "base/exit_code.h"

#include <gtest/gtest.h>

#include <csignal>
#include <new>

#include "base/error.h"
#include "base/signals.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

TEST(ExitCode, EveryKindOfErrorHasItsOwn) {
  EXPECT_EQ(exit_code_of(Error("x")), 1);
  EXPECT_EQ(exit_code_of(std::bad_alloc()), 1);
  EXPECT_EQ(exit_code_of(UsageError("x")), 2);
  EXPECT_EQ(exit_code_of(CheckFailed("x")), 3);
  EXPECT_EQ(exit_code_of(FaultError("x")), 4);
  EXPECT_EQ(exit_code_of(NumericalError("x")), 5);
  EXPECT_EQ(exit_code_of(Interrupted(SIGTERM, "x")), 143);
  EXPECT_EQ(kPreemptedSaved, 6);
}

TEST(ExitCode, AllAreInTheDocs) {
  const std::string page = test::slurp(test::source_path("docs/exit-codes.md"));
  for (const char* row : {"| 0 |", "| 1 |", "| 2 |", "| 3 |", "| 4 |", "| 5 |", "| 6 |", "| 128 + n |"})
    EXPECT_NE(page.find(row), std::string::npos) << row;
}

}  // namespace
}  // namespace hlat
