#include "data/dataset_facts.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace hlat {

std::string DatasetFacts::save() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Source& s : sources) list.push_back({{"files", s.files}, {"held_out", s.held_out}, {"validation_files", s.validation_files}});
  return list.dump();
}

DatasetFacts DatasetFacts::parse(std::string_view text) try {
  DatasetFacts facts;
  for (const nlohmann::json& j : nlohmann::json::parse(text))
    facts.sources.push_back({j.at("files"), j.at("held_out"), j.at("validation_files")});
  return facts;
} catch (const nlohmann::json::exception& e) {
  fail("the facts about the data cannot be read: {}", e.what());
}

}  // namespace hlat
