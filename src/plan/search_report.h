// The result of a search for people and for machines: the best layouts, and why the neighbours of the winner lost.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "plan/search.h"

namespace hlat {

// What a run of a layout costs, in words that fill columns: "0.0123", "$1.2M", "17.9"; "?" where a price is not known.
struct LayoutCost {
  std::string cpt, dollars, days;
};

struct SearchShown {
  std::optional<double> peak_flops;                               // of one rank
  std::function<LayoutCost(double tokens_per_s)> cost;            // may be empty
  std::vector<std::pair<std::string, ScoredLayout>> others = {};  // named layouts to show beside the best: "the paper's"
};

std::string search_text(const SearchResult& result, const SearchTarget& target, const SearchShown& shown);
nlohmann::ordered_json search_json(const SearchResult& result, const SearchTarget& target, const SearchShown& shown);

}  // namespace hlat
