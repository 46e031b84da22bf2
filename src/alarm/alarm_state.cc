#include "alarm/alarm_state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace hlat {

std::string AlarmState::save() const {
  nlohmann::json json{{"setup", setup}, {"memories", memories}, {"told", nlohmann::json::object()}};
  for (const auto& [rule, t] : told)
    json["told"][rule] = {{"times", t.times}, {"told", t.told_at}, {"seen", t.seen_at}, {"distance", t.distance}, {"quiet", t.quiet}};
  return json_text(json);
}

AlarmState AlarmState::parse(const std::string& text) try {
  const nlohmann::json json = nlohmann::json::parse(text);
  AlarmState state;
  state.setup = json.at("setup");
  state.memories = json.at("memories").get<std::map<std::string, AlarmMemory>>();
  for (const auto& [rule, t] : json.at("told").items())
    state.told[rule] = {
        .times = t.at("times"), .told_at = t.at("told"), .seen_at = t.at("seen"), .distance = t.at("distance"), .quiet = t.at("quiet")};
  return state;
} catch (const nlohmann::json::exception& e) {
  fail("the memory of the alarms cannot be read: {}", e.what());
}

int64_t AlarmState::times() const {
  int64_t all = 0;
  for (const auto& [rule, t] : told) all += t.times;
  return all;
}

}  // namespace hlat
