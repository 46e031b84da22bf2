#include "task/problems.h"

#include <algorithm>

#include "base/error.h"

namespace hlat {

void Problems::add_once(const std::string& line) {
  if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) lines_.push_back(line);
}

void Problems::refuse(const std::string& title) const {
  constexpr size_t kShown = 20;
  if (lines_.empty()) return;
  std::string text = title + ":";
  for (size_t i = 0; i < std::min(lines_.size(), kShown); ++i) text += "\n  " + lines_[i];
  if (lines_.size() > kShown) text += fmt::format("\n  and {} more", lines_.size() - kShown);
  throw UsageError(text);
}

}  // namespace hlat
