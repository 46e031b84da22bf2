// Dollars, days and energy against sums done by hand, and what is said where a figure is not known.
#include "plan/cost.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace hlat::test {
namespace {

NodePrice trn1() { return {.model = "on demand", .dollars_per_hour = 21.5}; }

TEST(RunCost, IsThePapersForAllNodes) {
  // 64 nodes of 21.50 dollars an hour at 1.16M tokens a second: 1376 dollars for 4.176e9 tokens.
  EXPECT_DOUBLE_EQ(cost_per_4m_tokens(21.5, 64, 1.16e6), 1376.0 / 4.176e9 * 4e6);
  const RunCost c = cost_of({.tokens_per_s = 1.16e6, .nodes = 64, .tokens = 1.8e12}, trn1());
  EXPECT_DOUBLE_EQ(c.cpt.value(), 1376.0 / 4.176e9 * 4e6);
  EXPECT_NEAR(c.days, 17.96, 0.005);  // "about 18 days of pure step time"
  EXPECT_DOUBLE_EQ(c.dollars.value(), c.days * 24 * 1376);
  EXPECT_NEAR(c.dollars.value(), c.cpt.value() * 1.8e12 / 4e6, 1e-6);
}

TEST(RunCost, OfTheSameSpeedPerNodeIsTheSamePerToken) {
  EXPECT_DOUBLE_EQ(cost_per_4m_tokens(32.77, 4, 4e4), cost_per_4m_tokens(32.77, 64, 64e4));
}

TEST(RunCost, LossesStretchTheRunAndNotItsSteps) {
  const CostAsk all{.tokens_per_s = 1e6, .nodes = 8, .tokens = 1e12};
  CostAsk half = all;
  half.goodput = 0.5;
  const NodePower power{.watts = 1000, .grams_per_kwh = 400};
  const RunCost a = cost_of(all, trn1(), power), b = cost_of(half, trn1(), power);
  EXPECT_DOUBLE_EQ(b.days, 2 * a.days);
  EXPECT_DOUBLE_EQ(b.dollars.value(), 2 * a.dollars.value());
  EXPECT_DOUBLE_EQ(b.tonnes.value(), 2 * a.tonnes.value());
  EXPECT_DOUBLE_EQ(b.cpt.value(), a.cpt.value());
  EXPECT_DOUBLE_EQ(b.joules_per_token.value(), a.joules_per_token.value());
}

TEST(RunCost, EnergyIsThatOfAllNodes) {
  const RunCost c = cost_of({.tokens_per_s = 1e6, .nodes = 10, .tokens = 3.6e9}, trn1(), {.watts = 8000, .grams_per_kwh = 500});
  EXPECT_DOUBLE_EQ(c.joules_per_token.value(), 0.08);
  EXPECT_DOUBLE_EQ(c.kwh.value(), 80);  // an hour of 80 kW
  EXPECT_DOUBLE_EQ(c.tonnes.value(), 0.04);
  EXPECT_EQ(energy_words(c), "0.08 J per token, 0.08 MWh, 0.04 t CO2");
}

TEST(RunCost, NamesTheKeyOfWhatIsNotKnown) {
  const CostAsk ask{.tokens_per_s = 1e6, .nodes = 8, .tokens = 1e12};
  const RunCost nothing = cost_of(ask, {.key = "prices.spot"}, {.watts_key = "power.watts", .grams_key = "power.grams"});
  for (const CostFigure* f : {&nothing.cpt, &nothing.dollars}) {
    EXPECT_FALSE(f->has_value());
    EXPECT_EQ(dollar_words(*f), "unknown: give prices.spot");
    EXPECT_EQ(figure_json(*f), "unknown: give prices.spot");
    EXPECT_THROW(f->value(), CheckFailed);
  }
  EXPECT_GT(nothing.days, 0);  // days need no price
  EXPECT_EQ(energy_words(nothing), "energy unknown: give power.watts");
  EXPECT_EQ(nothing.tonnes.missing(), "power.watts");
  const RunCost watts = cost_of(ask, trn1(), {.watts = 1000, .grams_key = "power.grams"});
  EXPECT_EQ(watts.tonnes.missing(), "power.grams");
  EXPECT_EQ(energy_words(watts), "0.008 J per token, 2.22 MWh, CO2 unknown: give power.grams");
}

TEST(RunCost, PriceOfZeroIsAPrice) {
  const RunCost c = cost_of({.tokens_per_s = 1, .nodes = 1, .tokens = 1}, {.dollars_per_hour = 0});
  EXPECT_EQ(dollar_words(c.dollars), "$0.00");
}

TEST(Tokens, AreReadWithTheirLetter) {
  EXPECT_EQ(parse_tokens("1.8T"), 1'800'000'000'000);
  EXPECT_EQ(parse_tokens("600B"), 600'000'000'000);
  EXPECT_EQ(parse_tokens("4m"), 4'000'000);
  EXPECT_EQ(parse_tokens("0.5K"), 500);
  EXPECT_EQ(parse_tokens("4194304"), 4194304);
  EXPECT_EQ(parse_tokens("1.000000000001T"), 1'000'000'000'001);
  EXPECT_EQ(parse_tokens("1000T"), 1'000'000'000'000'000);
}

TEST(Tokens, RefusesWhatIsNoNumberOfThem) {
  for (const char* text :
       {"", "T", "1.8", "1,8T", "1.8TT", "-4M", "0", "0.0001K", "1.0005K", "nanT", "inf", "1e12", "1001T", "4 M", "4G"}) {
    try {
      const int64_t read = parse_tokens(text, "--tokens");
      ADD_FAILURE() << text << " was read as " << read;
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find(fmt::format("--tokens = {}: ", text)), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("1.8T"), std::string::npos) << e.what();
    }
  }
}

TEST(Dollars, HaveThreeDigitsOrCents) {
  EXPECT_EQ(dollar_words(0.004127), "$0.00413");
  EXPECT_EQ(dollar_words(0.32), "$0.320");
  EXPECT_EQ(dollar_words(0.9999), "$1.00");
  EXPECT_EQ(dollar_words(21.5), "$21.50");
  EXPECT_EQ(dollar_words(999.999), "$1,000");
  EXPECT_EQ(dollar_words(1234567.8), "$1,234,568");
  EXPECT_EQ(dollar_words(123456.0), "$123,456");
}

}  // namespace
}  // namespace hlat::test
