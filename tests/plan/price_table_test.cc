// Offers in the order of what they cost, and those without a number at the end with what to fill in.
#include "plan/price_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace hlat::test {
namespace {

PriceTable some_offers() {
  return price_table(
      {{.machine = "p4d",
        .nodes = 64,
        .tokens_per_s = 0.9e6,
        .prices = {{.model = "on demand", .region = "us-east-1", .dollars_per_hour = 32.77, .source = "slide 4"},
                   {.model = "spot", .region = "us-east-1", .key = "p4d: prices.spot.us-east-1"}}},
       {.machine = "trn1",
        .nodes = 64,
        .tokens_per_s = 1.16e6,
        .prices = {{.model = "on demand", .region = "us-east-1", .dollars_per_hour = 21.5, .source = "slide 4", .date = "2024"}}},
       {.machine = "tiny", .nodes = 4, .problem = "does not fit: 3.0 GiB short", .prices = {{.dollars_per_hour = 1}}},
       {.machine = "bare", .nodes = 4, .tokens_per_s = 5}},
      1.8e12);
}

TEST(PriceTable, CheapestIsFirstAndUnknownLast) {
  const PriceTable t = some_offers();
  ASSERT_EQ(t.rows.size(), 3u);
  EXPECT_EQ(t.rows[0].machine, "trn1");
  EXPECT_EQ(t.rows[1].price.model, "on demand");
  EXPECT_FALSE(t.rows[2].cost.dollars.has_value());
  EXPECT_DOUBLE_EQ(t.rows[1].cost.dollars.value() / t.rows[0].cost.dollars.value(), 32.77 / 21.5 * 1.16 / 0.9);
  ASSERT_EQ(t.without.size(), 2u);
  EXPECT_EQ(t.without[0].machine, "tiny");
}

TEST(PriceTable, TextHasSourcesAndWhatToFillIn) {
  const std::string text = price_text(some_offers());
  EXPECT_LT(text.find("slide 4, 2024"), text.find("p4d"));
  EXPECT_NE(text.find("1.96x"), std::string::npos) << text;
  EXPECT_NE(text.find("unknown: give p4d: prices.spot.us-east-1"), std::string::npos) << text;
  EXPECT_NE(text.find("tiny, 4 nodes: does not fit: 3.0 GiB short"), std::string::npos) << text;
  EXPECT_NE(text.find("bare, 4 nodes: no prices are given"), std::string::npos) << text;
}

TEST(PriceTable, JsonHasNoNumberForWhatIsUnknown) {
  const nlohmann::ordered_json j = price_json(some_offers());
  EXPECT_EQ(j["rows"][0]["dollars_per_hour"], 21.5);
  EXPECT_TRUE(j["rows"][2]["dollars_per_hour"].is_string());
  EXPECT_TRUE(j["rows"][2]["dollars"].is_string());
  EXPECT_TRUE(j["rows"][2]["days"].is_number());
  EXPECT_EQ(j["without"][1]["why"], "no prices are given");
}

TEST(PriceTable, OfUnknownPricesAlone) {
  const PriceTable t = price_table({{.machine = "m", .nodes = 1, .tokens_per_s = 10, .prices = {{.key = "k"}}}}, 1e6);
  EXPECT_NE(price_text(t).find("unknown: give k"), std::string::npos);
}

}  // namespace
}  // namespace hlat::test
