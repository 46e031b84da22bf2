#include "cli/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/eval_table.h"
#include "cli/table.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

std::string p_text(const Difference& d) {
  if (d.test == TestKind::none) return "";
  return d.p < 0.0001 ? "p<0.0001" : fmt::format("p={:.4f}", d.p);
}

std::string tests_text(const Comparison& c) {
  std::vector<TestKind> used;
  for (const ComparedRow& row : c.rows)
    for (const Difference& d : row.differences)
      if (d.test != TestKind::none && std::find(used.begin(), used.end(), d.test) == used.end()) used.push_back(d.test);
  std::sort(used.begin(), used.end());
  std::string text;
  for (const TestKind kind : used) {
    const char* words = kind == TestKind::mcnemar  ? "exact McNemar test on the same examples, right or wrong"
                        : kind == TestKind::paired ? "z of the mean difference on the same examples"
                                                   : "z from both standard errors, as of independent examples";
    text += fmt::format("{}: {}\n", name_of(kind), words);
  }
  return text;
}

}  // namespace

std::string wins_text(const Comparison& c, size_t other) {
  const WinCount& w = c.wins[other];
  return fmt::format("{} wins {} of {} against {}{}; clearly (p < {}): {}, and loses {}\n", c.models[0], w.wins, w.all(),
                     c.models[other + 1], w.ties > 0 ? fmt::format(", {} equal", w.ties) : "", kClear, w.clear_wins, w.clear_losses);
}

std::string comparison_text(const Comparison& c) {
  std::vector<std::vector<std::string>> rows = {{"", "metric"}};
  std::string alignment = "ll";
  for (size_t m = 0; m < c.models.size(); ++m) {
    rows.front().push_back(c.models[m]);
    alignment += "r";
    if (m == 0) continue;
    for (const char* title : {"difference", "", "test"}) rows.front().emplace_back(title);
    alignment += "rll";
  }
  for (const ComparedRow& row : c.rows) {
    std::vector<std::string>& line = rows.emplace_back();
    line.push_back(row.group ? row.title : row.headline ? "  " + row.title : "");
    line.push_back(row.metric.label());
    for (size_t m = 0; m < c.models.size(); ++m) {
      line.push_back(row.values[m] ? value_text(*row.values[m]) : "");
      if (m == 0) continue;
      const Difference& d = row.differences[m - 1];
      const std::string shown = number_text(d.value, row.metric.share);
      line.push_back(shown.empty() || shown.starts_with('-') ? shown : "+" + shown);
      line.push_back(p_text(d));
      line.push_back(d.pairs > 0 ? fmt::format("{}, {} pairs", name_of(d.test), d.pairs) : std::string(name_of(d.test)));
    }
  }
  std::string text = table_text(rows, alignment) + "\n";
  for (size_t other = 0; other < c.wins.size(); ++other) text += wins_text(c, other);
  return text + tests_text(c);
}

Json comparison_json(const Comparison& c) {
  const auto number = [](double value) { return std::isnan(value) ? Json() : Json(value); };
  Json j{{"models", c.models}, {"rows", Json::array()}, {"wins", Json::array()}};
  for (const ComparedRow& row : c.rows) {
    Json r{{"name", row.name}, {"metric", row.metric.key}, {"group", row.group}, {"headline", row.headline}, {"values", Json::array()}};
    for (const auto& value : row.values)
      r["values"].push_back(value ? Json{{"value", value->value}, {"stderr", number(value->error)}} : Json());
    r["differences"] = Json::array();
    for (const Difference& d : row.differences)
      r["differences"].push_back({{"value", number(d.value)}, {"p", number(d.p)}, {"test", name_of(d.test)}, {"pairs", d.pairs}});
    j["rows"].push_back(std::move(r));
  }
  for (size_t m = 0; m < c.wins.size(); ++m) {
    const WinCount& w = c.wins[m];
    j["wins"].push_back({{"against", c.models[m + 1]},
                         {"wins", w.wins},
                         {"losses", w.losses},
                         {"ties", w.ties},
                         {"of", w.all()},
                         {"clear_wins", w.clear_wins},
                         {"clear_losses", w.clear_losses}});
  }
  return j;
}

}  // namespace hlat
