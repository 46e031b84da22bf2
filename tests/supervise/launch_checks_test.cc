// What follows from how hlat check --model ends before ranks are started.
#include "supervise/launch_checks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/machine.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

class LaunchChecksOfModel : public testing::Test {
 protected:
  LaunchChecks checks(const std::string& script) {
    setup_.config.run.dir = dir_.path("run");
    setup_.check_model = {"sh", "-c", script};
    setup_.say = [this](const std::string& text) { said_.push_back(text); };
    return LaunchChecks(setup_, dir_.path(""), "job", agents_, journal_, [] { return false; });
  }

  test::TempDir dir_;
  LaunchSetup setup_;
  Agents agents_{{}, "1"};
  LaunchJournal journal_{dir_.path("run"), "1"};
  std::vector<Host> here_ = {{host_name(), 1}};
  std::vector<std::string> said_;
};

TEST_F(LaunchChecksOfModel, WhatIsFoundWrongEndsTheLaunch) {
  const std::string found = R"(echo '{"well": false, "checks": [{"name": "leak", "state": "failed", "words": "of a token"}]}'; )";
  // mpirun may end with the code of another rank than the one that has printed.
  for (const char* code : {"exit 5", "exit 1", "exit 4"}) {
    LaunchChecks c = checks(found + code);
    EXPECT_THROW(c.check_model(here_), NumericalError) << code;
  }
  LaunchChecks numbers = checks("echo the loss is nan >&2; exit 5");
  EXPECT_THROW(numbers.check_model(here_), NumericalError);
  for (const char* code : {"exit 2", "exit 127"}) {
    LaunchChecks c = checks(code);
    EXPECT_THROW(c.check_model(here_), UsageError) << code;
  }
  LaunchChecks bug = checks("exit 3");
  EXPECT_THROW(bug.check_model(here_), CheckFailed);
  LaunchChecks well = checks(R"(echo '{"well": true, "checks": []}')");
  EXPECT_TRUE(well.check_model(here_));
  EXPECT_TRUE(said_.empty());
}

// Why it failed is what hlat says; mpirun only adds that a rank has failed.
TEST_F(LaunchChecksOfModel, ItEndsTheLaunchWithItsWords) {
  const std::string rule(76, '-');
  const std::string script = "printf '%s\\n' 'check: init' 'hlat: rank 1 of 2 on here: data.sources: no such file' '" + rule +
                             "' 'MPI_ABORT was invoked on rank 1' '" + rule + "' 'hlat: rank 0 of 2 on here: too' >&2; exit ";
  for (const char* code : {"2", "3", "5"}) {
    LaunchChecks c = checks(script + code);
    EXPECT_EQ(message_of([&] { c.check_model(here_); }),
              std::string("hlat check --model: it ended with code ") + code + ": rank 1 of 2 on here: data.sources: no such file");
  }
}

TEST_F(LaunchChecksOfModel, OneThatIsCutOffIsMadeAgain) {
  for (const char* end : {"echo a peer is gone >&2; exit 4", "kill -9 $$", "echo mpirun lost a host >&2; exit 1"}) {
    said_.clear();
    LaunchChecks c = checks(end);
    EXPECT_FALSE(c.check_model(here_)) << end;
    EXPECT_FALSE(c.check_model(here_)) << end;
    ASSERT_EQ(said_.size(), 2u);
    EXPECT_NE(said_[0].find("the check is made again"), std::string::npos) << said_[0];
    EXPECT_NE(message_of([&] { c.check_model(here_); }).find("3 times in a row"), std::string::npos) << end;
  }
}

// An error that may be the run's own is no transient fault for whoever would start the launch again.
TEST_F(LaunchChecksOfModel, OnlyAFaultEndsTheLaunchAsOne) {
  for (const auto& [end, fault] : {std::pair("exit 4", true), std::pair("kill -9 $$", true), std::pair("exit 1", false)}) {
    LaunchChecks c = checks(end);
    EXPECT_FALSE(c.check_model(here_) || c.check_model(here_));
    try {
      c.check_model(here_);
      FAIL() << end;
    } catch (const Error& e) {
      EXPECT_EQ(dynamic_cast<const FaultError*>(&e) != nullptr, fault) << end;
    }
  }
}

TEST_F(LaunchChecksOfModel, TheEndOfItsTimeTellsTheLimitAndHowFarItCame) {
  LaunchChecks c = checks("echo check: rope >&2; echo check: gradients >&2; sleep 60");
  setup_.config.parallel.start_timeout_s = 1;
  EXPECT_FALSE(c.check_model(here_));
  EXPECT_EQ(
      said_.at(0),
      "hlat check --model: it was ended after 1 s (parallel.start_timeout_s); its last words: check: gradients; the check is made again");
}

TEST_F(LaunchChecksOfModel, OneThatPassesIsNoLongerInARow) {
  LaunchChecks c = checks("cd " + dir_.path("") + R"( && echo x >>n && [ $(wc -l <n) = 3 ] && echo '{"well": true, "checks": []}')");
  EXPECT_FALSE(c.check_model(here_));
  EXPECT_FALSE(c.check_model(here_));
  EXPECT_TRUE(c.check_model(here_));
  EXPECT_FALSE(c.check_model(here_));
  EXPECT_FALSE(c.check_model(here_));
}

}  // namespace
}  // namespace hlat
