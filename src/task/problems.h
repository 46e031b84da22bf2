// Everything that is wrong with a file, told together: one problem per line, with its place.
#pragma once

#include <string>
#include <vector>

namespace hlat {

class Problems {
 public:
  void add(const std::string& where, const std::string& what) { lines_.push_back(where + ": " + what); }
  // What several places run into is told once.
  void add_once(const std::string& line);
  size_t count() const { return lines_.size(); }
  // UsageError with `title` and the first problems, where there are any.
  void refuse(const std::string& title) const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace hlat
