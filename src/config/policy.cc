#include "config/policy.h"

#include <fmt/format.h>

#include <charconv>

namespace hlat {

std::string_view name_of(PrecisionKind k) { return kPrecisionNames[static_cast<size_t>(k)]; }

std::string_view name_of(ScheduleKind k) { return kScheduleNames[static_cast<size_t>(k)]; }

std::string Recompute::str() const {
  if (every > 0) return fmt::format("every:{}", every);
  switch (kind) {
    case RecomputeKind::none: return "none";
    case RecomputeKind::selective: return "selective";
    case RecomputeKind::full: break;
  }
  return "full";
}

bool parse_recompute(std::string_view text, Recompute& out) {
  for (const RecomputeKind kind : {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
    const Recompute plain{kind, 0};
    if (text != plain.str()) continue;
    out = plain;
    return true;
  }
  constexpr std::string_view prefix = "every:";
  if (!text.starts_with(prefix)) return false;
  int64_t k = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + prefix.size(), end, k);
  if (error != std::errc() || stop != end || k < 1) return false;
  out = {RecomputeKind::full, k};
  return true;
}

}  // namespace hlat
