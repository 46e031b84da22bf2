// What is said of a word that is no name: the nearest one, or all there are; and lists of names that options take.
#include "config/nearest.h"

#include <gtest/gtest.h>

#include <array>

#include "support/message_of.h"

namespace hlat {
namespace {

constexpr std::array<std::string_view, 3> kParts = {"disk", "matmul", "comm"};

TEST(Nearest, AlternativesAreTheNearestNameOrAll) {
  EXPECT_EQ(alternatives("mathmul", kParts), "did you mean matmul?");
  EXPECT_EQ(alternatives("weather", kParts), "there are disk, matmul, comm");
}

TEST(Nearest, ListsOfNamesAreReadWithCommas) {
  EXPECT_EQ(parse_names("--only", "matmul,disk,matmul", "part", kParts), (std::set<std::string>{"disk", "matmul"}));
  EXPECT_EQ(message_of([] { parse_names("--only", "disk,mathmul", "part of the check", kParts); }),
            "--only disk,mathmul: 'mathmul' is no part of the check; did you mean matmul?");
  EXPECT_EQ(message_of([] { parse_names("--only", "weather", "part of the check", kParts); }),
            "--only weather: 'weather' is no part of the check; there are disk, matmul, comm");
  EXPECT_EQ(message_of([] { parse_names("--only", "", "part of the check", kParts); }),
            "--only names no part of the check; there are disk, matmul, comm");
}

}  // namespace
}  // namespace hlat
