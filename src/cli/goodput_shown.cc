#include "cli/goodput_shown.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/table.h"

namespace hlat {

std::string goodput_text(const RunAccount& run) {
  if (run.goodput.restarts == 0 && !run.launched) return "";
  return fmt::format("  whole run    {}\n  lost         {}\n", goodput_words(run.goodput), lost_words(run.goodput));
}

std::string goodput_table(const Goodput& g) {
  const auto share = [&](double seconds) { return g.wall_s > 0 ? fmt::format("{:.2f}%", 100 * seconds / g.wall_s) : ""; };
  std::vector<std::vector<std::string>> rows = {{"time", "", "share"}};
  rows.push_back({"useful steps", format_duration(g.useful_s), share(g.useful_s)});
  for (size_t i = 0; i < kLostCauses; ++i)
    if (g.lost[i] >= 0.005)  // else it would be 0.00s

      rows.push_back({"lost: " + std::string(words_of(static_cast<Lost>(i))), format_duration(g.lost[i]), share(g.lost[i])});
  rows.push_back({"wall time", format_duration(g.wall_s), ""});
  return table_text(rows, "lrr");
}

nlohmann::ordered_json goodput_json(const Goodput& g) {
  nlohmann::ordered_json lost = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kLostCauses; ++i) lost[std::string(name_of(static_cast<Lost>(i)))] = g.lost[i];
  return {{"goodput", g.ratio()},   {"wall_s", g.wall_s},   {"useful_s", g.useful_s},       {"lost_s", std::move(lost)},
          {"restarts", g.restarts}, {"steps_kept", g.kept}, {"steps_repeated", g.repeated}, {"step_s", g.step_s}};
}

}  // namespace hlat
