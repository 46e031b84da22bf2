// What a check found about one rank, and what a part of the check has to show.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hlat {

enum class Severity : uint8_t { warning, fault };

struct Finding {
  std::string part;  // "matmul"
  int rank = 0;
  std::string host;
  std::string words;  // "wrong: element ..."
  Severity severity = Severity::fault;
  std::string text() const;  // "rank 2 on node-b: matmul wrong: ..."
};

struct PartReport {
  std::string name;                                 // "matmul"
  std::string title = {};                           // one line: what was done and what it came to
  std::vector<std::vector<std::string>> rows = {};  // a table for people, its head first; may be empty
  std::string alignment = {};                       // of its columns, l or r
  nlohmann::ordered_json json = {};                 // the same for machines
  std::vector<Finding> findings = {};
  double seconds = 0;
};

struct CheckReport {
  std::vector<PartReport> parts;
  std::vector<std::string> hosts;         // by rank
  std::vector<Finding> findings() const;  // of all parts, faults first
  bool well() const;                      // no fault
  std::string verdict() const;            // one line for each fault and warning, or that all ranks are well
  nlohmann::ordered_json json() const;
};

}  // namespace hlat
