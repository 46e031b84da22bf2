#include "plan/price_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/table.h"

namespace hlat {

namespace {

double sorted_by(const PricedRow& row) {
  return row.cost.dollars.has_value() ? row.cost.dollars.value() : std::numeric_limits<double>::infinity();
}

std::string or_dash(const std::string& words) { return words.empty() ? "-" : words; }

std::string without_words(const PriceOffer& offer) { return offer.problem.empty() ? "no prices are given" : offer.problem; }

std::vector<std::string> price_cells(const PricedRow& row, double cheapest) {
  std::vector<std::string> cells{row.machine, fmt::format("{}", row.nodes), or_dash(row.price.region), or_dash(row.price.model)};
  const std::string days = fmt::format("{:.1f}", row.cost.days);
  if (!row.cost.dollars.has_value()) {
    cells.insert(cells.end(), {"-", "-", "-", "-", days, unknown_words(row.cost.dollars)});
    return cells;
  }
  std::string origin = row.price.source;
  if (!row.price.date.empty()) origin += (origin.empty() ? "" : ", ") + row.price.date;
  cells.insert(cells.end(), {dollar_words(*row.price.dollars_per_hour), dollar_words(row.cost.cpt), dollar_words(row.cost.dollars),
                             cheapest > 0 ? fmt::format("{:.2f}x", row.cost.dollars.value() / cheapest) : "-", days, origin});
  return cells;
}

}  // namespace

PriceTable price_table(const std::vector<PriceOffer>& offers, double tokens) {
  PriceTable table{.tokens = tokens, .rows = {}, .without = {}};
  for (const PriceOffer& offer : offers) {
    if (!offer.problem.empty() || offer.prices.empty()) {
      table.without.push_back(offer);
      continue;
    }
    for (const NodePrice& price : offer.prices)
      table.rows.push_back({offer.machine, offer.nodes, price,
                            cost_of({.tokens_per_s = offer.tokens_per_s, .nodes = offer.nodes, .tokens = tokens}, price)});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const PricedRow& a, const PricedRow& b) { return sorted_by(a) < sorted_by(b); });
  return table;
}

std::string price_text(const PriceTable& table) {
  std::vector<std::vector<std::string>> rows{
      {"machine", "nodes", "region", "price", "$/h a node", "$/4M tokens", "dollars", "", "days", "source"}};
  const double cheapest = table.rows.empty() || !table.rows.front().cost.dollars.has_value() ? 0 : table.rows.front().cost.dollars.value();
  for (const PricedRow& row : table.rows) rows.push_back(price_cells(row, cheapest));
  std::string s = fmt::format("{} tokens\n{}", format_count(table.tokens), table_text(rows, "lrllrrrrrl"));
  for (const PriceOffer& offer : table.without) s += fmt::format("{}, {} nodes: {}\n", offer.machine, offer.nodes, without_words(offer));
  return s;
}

nlohmann::ordered_json price_json(const PriceTable& table) {
  nlohmann::ordered_json j{{"tokens", table.tokens}, {"rows", nlohmann::ordered_json::array()}};
  for (const PricedRow& row : table.rows)
    j["rows"].push_back({{"machine", row.machine},
                         {"nodes", row.nodes},
                         {"region", row.price.region},
                         {"model", row.price.model},
                         {"dollars_per_hour", row.price.dollars_per_hour ? nlohmann::ordered_json(*row.price.dollars_per_hour)
                                                                         : nlohmann::ordered_json(unknown_words(row.cost.dollars))},
                         {"dollars_per_4m_tokens", figure_json(row.cost.cpt)},
                         {"dollars", figure_json(row.cost.dollars)},
                         {"days", row.cost.days},
                         {"source", row.price.source},
                         {"date", row.price.date}});
  j["without"] = nlohmann::ordered_json::array();
  for (const PriceOffer& offer : table.without)
    j["without"].push_back({{"machine", offer.machine}, {"nodes", offer.nodes}, {"why", without_words(offer)}});
  return j;
}

}  // namespace hlat
