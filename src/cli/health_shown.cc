#include "cli/health_shown.h"

#include <fmt/format.h>

namespace hlat {

std::string health_text(const std::optional<HealthRecord>& health, int64_t step) {
  if (!health) return "";
  if (health->checked == step) return "checked";
  return health->passed > 0 ? fmt::format("not checked since step {}", health->passed) : "not checked";
}

nlohmann::ordered_json health_json(const std::optional<HealthRecord>& health, int64_t step) {
  if (!health) return nullptr;
  return {{"verified", health->checked == step}, {"checked", health->checked}, {"passed", health->passed}};
}

}  // namespace hlat
