// How a model scales on a machine: one row for each number of nodes, with its speed, its efficiency against the first row that fits, and
// what a run costs there; as a table, as JSON and as plots.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/cost.h"

namespace hlat {

// What dry run and simulation say of one number of nodes.
struct ScalingPoint {
  int64_t nodes = 0, ranks = 0;
  std::string layout = {};   // in words: "tp 8 x pp 1 x dp 64"
  std::string problem = {};  // why there is no layout at all; empty: there is one
  double step_s = 0;
  double tokens_per_s = 0;
  std::optional<double> mfu = {};                // nothing: the peak is not known
  double needed_bytes = 0, available_bytes = 0;  // of the fullest rank
  bool fits() const { return problem.empty() && needed_bytes <= available_bytes; }
};

struct ScalingAsk {
  double tokens = 0;  // of a run
  NodePrice price = {};
  NodePower power = {};
};

struct ScalingRow {
  ScalingPoint point;
  std::optional<RunCost> cost = {};  // of what fits
  double tokens_per_rank_s = 0;
  double efficiency = 0;  // tokens_per_rank_s over that of the first row that fits; 0 where it does not
};

struct Scaling {
  std::string name;  // of the machine and the model
  ScalingAsk ask;
  std::vector<ScalingRow> rows;
};

Scaling scaling_of(std::string name, const std::vector<ScalingPoint>& points, const ScalingAsk& ask);

std::string scaling_text(const Scaling& scaling);
nlohmann::ordered_json scaling_json(const Scaling& scaling);

// Against the number of nodes; rows that do not fit are gaps. tokens_per_s has dashed lines for efficiency 1. Machines without a price
// have no line of dollars.
enum class ScalingAxis : uint8_t { tokens_per_s, efficiency, cpt };
std::string scaling_svg(const std::vector<Scaling>& machines, ScalingAxis axis, const std::string& title);

}  // namespace hlat
