// The result of a search for people and for machines: the best layouts, and why the neighbours of the winner lost.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/search.h"

namespace hlat {

// What a run of a layout costs, in words that fill columns: "$0.0123", "$1,234,567", "17.9"; "?" where a price is not known.
struct LayoutCost {
  std::string cpt, dollars, days;
};

struct SearchShown {
  std::function<std::optional<double>(const Config&)> peak_flops;  // of one rank, for MFU; nothing: not known
  std::function<LayoutCost(double tokens_per_s)> cost;             // may be empty
  bool precisions = false;                                         // they differ between layouts
  std::vector<std::pair<std::string, ScoredLayout>> others = {};   // named layouts to show beside the best: "given"
};

std::string search_text(const SearchResult& result, const SearchTarget& target, const SearchShown& shown);
nlohmann::ordered_json search_json(const SearchResult& result, const SearchTarget& target, const SearchShown& shown);

}  // namespace hlat
