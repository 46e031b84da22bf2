#include "report/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/free_keys.h"
#include "config/saved.h"
#include "report/runs_table.h"

namespace hlat {

namespace {

constexpr size_t kMostShown = 12;  // keys in a terminal

// Of the keys that decide nothing of the numbers those that decide how fast they come.
constexpr std::array<std::string_view, 3> kOfSpeed = {"device.threads", "device.backend", "parallel.comm"};

bool is_compared(std::string_view key) { return !is_free_key(key) || std::find(kOfSpeed.begin(), kOfSpeed.end(), key) != kOfSpeed.end(); }

}  // namespace

std::vector<Setting> differing_settings(const std::vector<ReportRun>& runs) {
  std::vector<Setting> out;
  const auto known = std::find_if(runs.begin(), runs.end(), [](const ReportRun& run) { return run.config.has_value(); });
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].config) continue;
    for (const KeyChange& change : config_changes(*known->config, *runs[i].config)) {
      if (!is_compared(change.key)) continue;
      auto place = std::find_if(out.begin(), out.end(), [&](const Setting& s) { return s.key == change.key; });
      if (place == out.end()) {
        place = out.insert(out.end(), {.key = change.key, .values = std::vector<std::string>(runs.size())});
        for (size_t r = 0; r < runs.size(); ++r)
          if (runs[r].config) place->values[r] = change.was;
      }
      place->values[i] = change.is;
    }
  }
  return out;
}

nlohmann::ordered_json settings_json(const std::vector<ReportRun>& runs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Setting& s : differing_settings(runs)) list.push_back({{"key", s.key}, {"values", s.values}});
  return list;
}

std::string settings_text(const std::vector<ReportRun>& runs, int width) {
  const std::vector<Setting> settings = differing_settings(runs);
  if (settings.empty()) return {};
  const size_t shown = std::min(settings.size(), kMostShown);
  TableCells cells = {{"run"}};
  for (size_t s = 0; s < shown; ++s) cells[0].push_back(settings[s].key);
  for (size_t r = 0; r < runs.size(); ++r) {
    cells.push_back({runs[r].name});
    for (size_t s = 0; s < shown; ++s) cells.back().push_back(settings[s].values[r]);
  }
  const std::string more = shown < settings.size() ? fmt::format("and {} more keys\n", settings.size() - shown) : "";
  return table_within(cells, "l" + std::string(shown, 'r'), width) + more;
}

}  // namespace hlat
