// Regular expressions: matches, groups and their names, empty matches, Unicode.
#include "base/pattern.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/message_of.h"

namespace hlat {
namespace {

std::vector<std::string> matches(const std::string& pattern, std::string_view text) {
  const Pattern compiled(pattern);
  Pattern::Search search(compiled);
  Pattern::Range m{};
  std::vector<std::string> out;
  for (size_t from = 0; from <= text.size() && search.find(text, from, m); from = Pattern::after(text, m))
    out.emplace_back(text.substr(m.begin, m.end - m.begin));
  return out;
}

TEST(Pattern, FindsAllMatches) {
  EXPECT_EQ(matches("a.", "abaxc"), (std::vector<std::string>{"ab", "ax"}));
  EXPECT_TRUE(matches("z", "abc").empty());
  EXPECT_EQ(matches(R"(\b\w+)", "élan été"), (std::vector<std::string>{"élan", "été"})) << "letters are Unicode's";
}

TEST(Pattern, EmptyMatchesGoOnACharacterFurther) {
  EXPECT_EQ(matches("x*", "éx"), (std::vector<std::string>{"", "x", ""})) << "not into the middle of a character";
}

TEST(Pattern, GroupsByNumberAndName) {
  const Pattern pattern("(?<last>z)|(?<first>a)(b)?");
  EXPECT_EQ(pattern.groups(), 3u);
  EXPECT_EQ(pattern.names(), (std::vector<std::pair<std::string, size_t>>{{"last", 1}, {"first", 2}}));
  Pattern::Search search(pattern, Pattern::Search::Captures::kept);
  Pattern::Range m{};
  ASSERT_TRUE(search.find("xab", 0, m));
  EXPECT_FALSE(search.group(1));
  ASSERT_TRUE(search.group(3));
  EXPECT_EQ(search.group(3)->begin, 2u);
  ASSERT_TRUE(search.find("xac", 0, m));
  EXPECT_FALSE(search.group(3)) << "it took no part in this match";
}

TEST(Pattern, SaysWhatIsWrong) {
  EXPECT_THROW(Pattern("("), Error);
  EXPECT_NE(message_of([] { Pattern("[z-a]", "shown"); }).find("pattern 'shown': "), std::string::npos);
}

}  // namespace
}  // namespace hlat
