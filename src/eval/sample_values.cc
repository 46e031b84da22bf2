#include "eval/sample_values.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/results_file.h"

namespace hlat {

SampleValues read_sample_values(const std::filesystem::path& folder, const std::string& task) {
  SampleValues all;
  std::ifstream in(folder / kSamplesName / (task + ".jsonl"));
  for (std::string line; std::getline(in, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (!j.is_object()) continue;
    try {
      SampleValue value{.target = j.at("target"), .values = {}};
      for (const auto& [key, number] : j.at("metrics").items()) value.values[key] = number;
      all[{j.at("subtask"), j.at("doc_id")}] = std::move(value);
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  return all;
}

}  // namespace hlat
