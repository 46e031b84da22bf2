// metrics.jsonl of a run's folder: an object for each line.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hlat::test {

inline std::vector<nlohmann::json> metrics_of(const std::string& run_folder) {
  std::ifstream in(run_folder + "/metrics.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace hlat::test
