// loss.alarms: all, none, names, and what is said about names that are none.
#include "config/alarm_rules.h"

#include <gtest/gtest.h>

#include "config/validate.h"

namespace hlat {
namespace {

TEST(AlarmRules, NamesAreReadAndUnknownOnesAnsweredWithTheNearest) {
  std::vector<std::string> problems;
  EXPECT_TRUE(parse_alarms("all", problems).all());
  EXPECT_TRUE(parse_alarms(" none ", problems).none());
  const AlarmSet two = parse_alarms("leak, grad_growth", problems);
  EXPECT_EQ(two.count(), 2u);
  EXPECT_TRUE(two.test(static_cast<size_t>(AlarmRule::leak)) && two.test(static_cast<size_t>(AlarmRule::grad_growth)));
  EXPECT_TRUE(problems.empty());
  parse_alarms("leek", problems);
  parse_alarms("leak,none", problems);
  parse_alarms("leak,", problems);
  parse_alarms("", problems);
  parse_alarms("xyzzy-something", problems);
  ASSERT_EQ(problems.size(), 5u);
  EXPECT_EQ(problems[0], "no rule is called leek; did you mean leak?");
  EXPECT_EQ(problems[1], "none stands alone, without other names");
  EXPECT_NE(problems[2].find("a name is missing"), std::string::npos);
  EXPECT_NE(problems[3].find("a name is missing"), std::string::npos);
  EXPECT_NE(problems[4].find("there are grad_growth, loss_rise"), std::string::npos) << problems[4];
}

TEST(AlarmRules, AConfigWithAnUnknownNameIsRefused) {
  Config config;
  EXPECT_TRUE(validate(config).empty());
  config.loss.alarms = "spikes";
  const std::vector<Violation> found = validate(config);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].keys, std::vector<std::string>{"loss.alarms"});
  EXPECT_NE(found[0].message.find("did you mean spike?"), std::string::npos) << found[0].message;
}

}  // namespace
}  // namespace hlat
