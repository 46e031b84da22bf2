// Replacements by regular expressions, one after the other: how a task cleans or detokenises text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.h"

namespace hlat {

class Rewrite {
 public:
  // In `with`, \1 to \9 stand for what the groups of the pattern matched, and \\ for a backslash. Error: what is wrong with one of them.
  void add(const std::string& pattern, const std::string& with);
  std::string operator()(std::string_view text) const;
  bool empty() const { return steps_.empty(); }

 private:
  struct Piece {
    std::string text;
    size_t group;  // behind the text; 0: none
  };
  struct Step {
    Pattern pattern;
    std::vector<Piece> with;
  };
  static std::string apply(const Step& step, std::string_view text);

  std::vector<Step> steps_;
};

}  // namespace hlat
