#include "task/problems.h"

#include <algorithm>

#include "base/error.h"

namespace hlat {

void Problems::refuse(const std::string& title) const {
  constexpr size_t kShown = 20;
  if (lines_.empty()) return;
  std::string text = title + ":";
  for (size_t i = 0; i < std::min(lines_.size(), kShown); ++i) text += "\n  " + lines_[i];
  if (lines_.size() > kShown) text += fmt::format("\n  and {} more", lines_.size() - kShown);
  throw UsageError(text);
}

}  // namespace hlat
