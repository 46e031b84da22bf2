// What a run costs: dollars, days, energy and carbon, from the tokens per second of a layout and the price and power of its nodes.
//
// The paper's cost per 4M tokens is CPT = C / (T * 3600) * 4e6, with C the dollars an hour of all nodes and T their tokens per second. It
// is that of steps alone; dollars and days of a run also count what is lost between them (goodput).
// A price or power that nobody gave makes no number: a CostFigure then names the key to give.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hlat {

// A number, or the key of what has to be given to know it.
class CostFigure {
 public:
  static CostFigure known(double value) { return CostFigure(value, {}); }
  static CostFigure unknown(std::string key) { return CostFigure(std::nullopt, std::move(key)); }

  bool has_value() const { return value_.has_value(); }
  double value() const;                                    // there must be one
  const std::string& missing() const { return missing_; }  // the key; empty where there is a value
  CostFigure times(double factor) const { return has_value() ? known(*value_ * factor) : *this; }

 private:
  CostFigure(std::optional<double> value, std::string missing) : value_(value), missing_(std::move(missing)) {}
  std::optional<double> value_;
  std::string missing_;
};

// One node's price. Source and date say where the number is from.
struct NodePrice {
  std::string model = {};   // "on demand", "reserved", "spot"
  std::string region = {};  // "us-east-1"
  std::optional<double> dollars_per_hour = {};
  std::string source = {}, date = {};
  std::string key = "dollars_per_hour";  // what a user gives where there is no number
};

struct NodePower {
  std::optional<double> watts = {};          // of one node at work
  std::optional<double> grams_per_kwh = {};  // CO2 of the grid
  std::string watts_key = "watts", grams_key = "grams_per_kwh";
};

// What is priced.
struct CostAsk {
  double tokens_per_s = 0;  // of all nodes, in steps
  int64_t nodes = 1;
  double tokens = 0;   // of the run
  double goodput = 1;  // share of the time that goes into steps that are kept
};

struct RunCost {
  CostFigure cpt;      // dollars for 4M tokens
  CostFigure dollars;  // of the run
  double days = 0;
  CostFigure joules_per_token;  // of steps
  CostFigure kwh, tonnes;       // of the run; tonnes of CO2. Nodes draw as much while they wait.
};

inline constexpr double kCptTokens = 4e6;
double cost_per_4m_tokens(double dollars_per_node_hour, int64_t nodes, double tokens_per_s);
RunCost cost_of(const CostAsk& ask, const NodePrice& price, const NodePower& power = {});

// "1.8T", "600B", "4M", "32K" or a plain whole number. key: named where the text is none of them.
int64_t parse_tokens(std::string_view text, std::string_view key = "--tokens");

std::string dollar_words(double dollars);             // "$0.00413", "$21.50", "$1,234,568"
std::string dollar_words(const CostFigure& dollars);  // or "unknown: give KEY"
std::string unknown_words(const CostFigure& figure);
nlohmann::ordered_json figure_json(const CostFigure& figure);  // a number, or the words
// "0.71 J per token, 23.4 MWh, 9.1 t CO2", each with what is not known.
std::string energy_words(const RunCost& cost);

}  // namespace hlat
