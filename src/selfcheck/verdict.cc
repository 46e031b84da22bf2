#include "selfcheck/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"

namespace hlat {

std::string_view name_of(CheckState state) {
  switch (state) {
    case CheckState::ok: return "ok";
    case CheckState::failed: return "FAILED";
    case CheckState::not_applicable: break;
  }
  return "-";
}

bool SelfCheckReport::well() const {
  return std::none_of(checks.begin(), checks.end(), [](const ModelCheck& c) { return c.verdict.state == CheckState::failed; });
}

const ModelCheck* SelfCheckReport::find(const std::string& name) const {
  const auto found = std::find_if(checks.begin(), checks.end(), [&](const ModelCheck& c) { return c.name == name; });
  return found == checks.end() ? nullptr : &*found;
}

std::string SelfCheckReport::text() const {
  std::vector<std::vector<std::string>> rows = {{"check", "", "s", "evidence"}};
  for (const ModelCheck& c : checks)
    rows.push_back({c.name, std::string(name_of(c.verdict.state)), fmt::format("{:.2f}", c.seconds), c.verdict.words});
  const auto failed =
      std::count_if(checks.begin(), checks.end(), [](const ModelCheck& c) { return c.verdict.state == CheckState::failed; });
  return fmt::format("{}\n{}\n{} in {:.1f} s\n", model, table_text(rows, "llrl"),
                     failed == 0 ? "the model is well" : fmt::format("{} of {} checks FAILED", failed, checks.size()), seconds);
}

nlohmann::ordered_json SelfCheckReport::json() const {
  nlohmann::ordered_json j{{"well", well()}, {"model", model}, {"seconds", seconds}};
  j["checks"] = nlohmann::ordered_json::array();
  for (const ModelCheck& c : checks) {
    const char* state = c.verdict.state == CheckState::ok ? "ok" : c.verdict.state == CheckState::failed ? "failed" : "none";
    j["checks"].push_back({{"name", c.name}, {"state", state}, {"words", c.verdict.words}, {"seconds", c.seconds}});
  }
  return j;
}

std::string some_of(const std::vector<std::string>& names, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

}  // namespace hlat
