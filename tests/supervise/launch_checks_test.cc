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
  LaunchChecks well = checks(R"(echo '{"well": true, "checks": []}')");
  EXPECT_TRUE(well.check_model(here_));
  EXPECT_TRUE(said_.empty());
}

TEST_F(LaunchChecksOfModel, OneThatIsCutOffIsMadeAgain) {
  for (const char* end : {"echo a peer is gone >&2; exit 4", "kill -9 $$", "exit 3"}) {
    said_.clear();
    LaunchChecks c = checks(end);
    EXPECT_FALSE(c.check_model(here_)) << end;
    EXPECT_FALSE(c.check_model(here_)) << end;
    ASSERT_EQ(said_.size(), 2u);
    EXPECT_NE(said_[0].find("the check is made again"), std::string::npos) << said_[0];
    EXPECT_NE(message_of([&] { c.check_model(here_); }).find("3 times in a row"), std::string::npos) << end;
  }
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
