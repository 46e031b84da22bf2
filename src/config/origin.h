// Where values come from, so that every message can point at the line to change.
#pragma once

#include <string>

namespace hlat {

struct Origin {
  enum class Kind { fallback, preset, file, command_line };
  Kind kind = Kind::fallback;
  std::string name;  // of the file or the preset; of words that stand in a file instead of on the command line: that file
  int line = 0;      // in the file, from 1; 0 for the file as a whole

  bool written() const { return kind == Kind::file || kind == Kind::command_line; }
  std::string str() const;  // "configs/x.yaml:7" | "command line" | "preset nano" | "default"
};

// One `section.name: text` as found, not yet looked at.
struct Entry {
  std::string section;
  std::string name;
  std::string text;
  enum class Kind { scalar, list, map, items, nothing };
  Kind kind = Kind::scalar;  // the text of a list is "[a, b]", of a map "{a: b}"; items have entries of their own
  Origin origin;
  size_t count = 0;  // of items
  std::string key() const { return section.empty() ? name : section + "." + name; }
};

struct Problem {
  Origin origin;
  std::string text;
};

}  // namespace hlat
