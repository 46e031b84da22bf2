// What the rules remember from one step to the next: lists of numbers by name, of each rule its own, and what was told. It is part of a
// checkpoint (record "alarms"), so that a run in parts raises what the uninterrupted one does. A few kilobytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hlat {

using AlarmMemory = std::map<std::string, std::vector<double>>;  // finite numbers only

// How one rule stands: quiet, or raised and told again at growing distances.
struct AlarmTold {
  int64_t times = 0;     // told so far
  int64_t told_at = 0;   // the latest step in which it was
  int64_t seen_at = 0;   // the latest step in which the rule found something
  int64_t distance = 0;  // steps to the next time while it lasts
  int64_t quiet = 0;     // looks since seen_at that found nothing
  bool operator==(const AlarmTold&) const = default;
};

struct AlarmState {
  std::string setup = {};                       // of the run that the memories are of
  std::map<std::string, AlarmMemory> memories;  // by rule
  std::map<std::string, AlarmTold> told;        // by rule

  std::string save() const;                          // JSON
  static AlarmState parse(const std::string& json);  // Error: it is none
  int64_t times() const;                             // told, of all rules
  bool operator==(const AlarmState&) const = default;
};

}  // namespace hlat
