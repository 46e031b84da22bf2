// The two ways in: a YAML file and `section.key=value` words. Both give entries and report what has no meaning at all.
#pragma once

#include <string>
#include <vector>

#include "config/origin.h"

namespace hlat {

struct Reading {
  std::vector<Entry> entries;
  std::vector<Problem> problems;
  bool complete = true;  // false when a file is missing or broken, so that what it would have said is unknown
};

void read_yaml(const std::string& path, Reading& out);
void read_override(const std::string& word, Reading& out);

}  // namespace hlat
