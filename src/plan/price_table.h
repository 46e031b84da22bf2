// The same run on several machines, in several regions, under several price models: the cheapest first.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/cost.h"

namespace hlat {

// A machine that could run it.
struct PriceOffer {
  std::string machine;
  int64_t nodes = 1;
  double tokens_per_s = 0;   // of all nodes
  std::string problem = {};  // why it cannot run there; empty: it can
  std::vector<NodePrice> prices = {};
};

struct PricedRow {
  std::string machine;
  int64_t nodes = 1;
  NodePrice price;
  RunCost cost;
};

struct PriceTable {
  double tokens = 0;
  std::vector<PricedRow> rows;      // dollars of the run rise; prices that are not known stand at the end, as they were given
  std::vector<PriceOffer> without;  // machines that cannot run it, or of which no price was given at all
};

PriceTable price_table(const std::vector<PriceOffer>& offers, double tokens);
std::string price_text(const PriceTable& table);
nlohmann::ordered_json price_json(const PriceTable& table);

}  // namespace hlat
