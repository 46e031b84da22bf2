#include "cli/compare_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/table.h"
#include "cli/eval_table.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

std::string p_text(const Difference& d) {
  if (d.test == TestKind::none) return "";
  return d.p < 0.0001 ? "p<0.0001" : fmt::format("p={:.4f}", d.p);
}

// "1838", "40 of 1838"; of a group that is not whole "2 of 6 tasks".
std::string count_text(const ComparedRow& row, const Measured& value) {
  if (value.limited()) return fmt::format("{} of {}{}", value.examples, value.available, row.group ? " tasks" : "");
  return value.examples > 0 && !row.group ? std::to_string(value.examples) : "";
}

std::string tests_text(const Comparison& c) {
  std::vector<TestKind> used;
  for (const ComparedRow& row : c.rows)
    for (const Difference& d : row.differences)
      if (d.test != TestKind::none && std::find(used.begin(), used.end(), d.test) == used.end()) used.push_back(d.test);
  std::sort(used.begin(), used.end());
  std::string text;
  for (const TestKind kind : used) {
    const char* words = kind == TestKind::mcnemar  ? "exact McNemar test on the examples that both have, right or wrong"
                        : kind == TestKind::paired ? "z of the mean difference on the examples that both have"
                                                   : "z from both standard errors, as of independent examples";
    text += fmt::format("{}: {}\n", name_of(kind), words);
  }
  return text;
}

std::string wins_text(const Comparison& c, size_t other) {
  const WinCount& w = c.wins[other];
  const std::string& name = c.models[other + 1];
  if (w.all() == 0) return fmt::format("{} and {} have no task or whole group in common\n", c.models[0], name);
  const std::string equal = w.ties > 0 ? fmt::format(", {} equal", w.ties) : "";
  const std::string clear =
      w.tested > 0 ? fmt::format("clearly (p < {}): {}, and loses {}", kClear, w.clear_wins, w.clear_losses) : "no test can be made";
  return fmt::format("{} wins {} of {} against {}{}; {}\n", c.models[0], w.wins, w.all(), name, equal, clear);
}

// What a model has only a part of: examples of tasks, or tasks of groups.
std::string parts_text(const Comparison& c, size_t model, bool groups) {
  constexpr size_t kShown = 4;
  std::vector<std::string> parts;
  for (const ComparedRow& row : c.rows)
    if (row.headline && row.group == groups && row.values[model].limited())
      parts.push_back(row.name + " " + count_text(row, row.values[model]));
  if (parts.empty()) return "";
  const std::string more = parts.size() > kShown ? fmt::format(" and {} more", parts.size() - kShown) : "";
  parts.resize(std::min(parts.size(), kShown));
  const char* words = groups ? "has part of these groups" : "is limited to part of the examples";
  return fmt::format("{} {}: {}{}\n", c.models[model], words, fmt::join(parts, ", "), more);
}

Json number(double value) { return std::isnan(value) ? Json() : Json(value); }

Json value_json(const Measured& value) {
  if (!value.metric) return value.failed ? Json{{"failed", true}} : Json();
  Json j{{"value", value.metric->value}, {"stderr", number(value.metric->error)}};
  if (value.examples > 0) j.update({{"n", value.examples}, {"available", value.available}});
  return j;
}

std::vector<std::string> head(const Comparison& c) {
  std::vector<std::string> titles = {"", "metric"};
  for (size_t m = 0; m < c.models.size(); ++m) {
    titles.insert(titles.end(), {c.models[m], "n"});
    if (m > 0) titles.insert(titles.end(), {"difference", "", "test"});
  }
  return titles;
}

std::vector<std::string> line(const ComparedRow& row) {
  std::vector<std::string> cells = {row.group ? row.title : row.headline ? "  " + row.title : "", row.metric.label()};
  for (size_t m = 0; m < row.values.size(); ++m) {
    const Measured& value = row.values[m];
    cells.push_back(value.metric ? value_text(*value.metric) : value.failed && row.headline ? "failed" : "");
    cells.push_back(value.metric && row.headline ? count_text(row, value) : "");
    if (m == 0) continue;
    const Difference& d = row.differences[m - 1];
    const std::string shown = number_text(d.value, row.metric.share);
    cells.push_back(shown.empty() || shown.starts_with('-') ? shown : "+" + shown);
    cells.push_back(p_text(d));
    cells.push_back(d.pairs > 0 ? fmt::format("{}, {} pairs", name_of(d.test), d.pairs) : std::string(name_of(d.test)));
  }
  return cells;
}

}  // namespace

std::string summary_text(const Comparison& c) {
  std::string text;
  for (size_t other = 0; other < c.wins.size(); ++other) text += wins_text(c, other);
  for (size_t m = 0; m < c.models.size(); ++m) text += parts_text(c, m, false) + parts_text(c, m, true);
  return text;
}

std::string comparison_text(const Comparison& c) {
  std::vector<std::vector<std::string>> rows = {head(c)};
  std::string alignment = "llrr";
  for (size_t m = 1; m < c.models.size(); ++m) alignment += "rrrll";
  for (const ComparedRow& row : c.rows) rows.push_back(line(row));
  return table_text(rows, alignment) + "\n" + summary_text(c) + tests_text(c);
}

Json comparison_json(const Comparison& c) {
  Json j{{"models", c.models}, {"rows", Json::array()}, {"wins", Json::array()}};
  for (const ComparedRow& row : c.rows) {
    Json r{{"name", row.name}, {"metric", row.metric.key}, {"group", row.group}, {"headline", row.headline}, {"values", Json::array()}};
    for (const Measured& value : row.values) r["values"].push_back(value_json(value));
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
                         {"tested", w.tested},
                         {"clear_wins", w.clear_wins},
                         {"clear_losses", w.clear_losses}});
  }
  return j;
}

}  // namespace hlat
