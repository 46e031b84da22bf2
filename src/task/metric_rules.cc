#include "task/metric_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace hlat {
namespace {

struct Row {
  TaskKind kind;
  std::string_view name;
  Rule rule;
  Aggregation aggregation = Aggregation::mean;
  bool higher_is_better = true;
};

constexpr std::array kRows = {
    Row{TaskKind::choice, "acc", Rule::acc},
    Row{TaskKind::choice, "acc_norm", Rule::acc_norm},
    Row{TaskKind::choice, "acc_bytes", Rule::acc_bytes},
    Row{TaskKind::choice, "mc2", Rule::mc2},
    Row{TaskKind::choice, "pct_stereotype", Rule::pct_stereotype, Aggregation::mean, false},
    Row{TaskKind::choice, "likelihood_diff", Rule::likelihood_diff, Aggregation::mean, false},
    Row{TaskKind::likelihood, "acc", Rule::acc},
    Row{TaskKind::likelihood, "perplexity", Rule::perplexity, Aggregation::perplexity, false},
    Row{TaskKind::perplexity, "word_perplexity", Rule::word_perplexity, Aggregation::weighted_perplexity, false},
    Row{TaskKind::perplexity, "byte_perplexity", Rule::byte_perplexity, Aggregation::weighted_perplexity, false},
    Row{TaskKind::perplexity, "token_perplexity", Rule::token_perplexity, Aggregation::weighted_perplexity, false},
    Row{TaskKind::perplexity, "bits_per_byte", Rule::bits_per_byte, Aggregation::bits_per_weight, false},
    Row{TaskKind::generate, "exact_match", Rule::exact_match},
    Row{TaskKind::code, "pass@", Rule::pass_at},
};

// The row of a written name, and the k of pass@k.
const Row* find_row(TaskKind kind, std::string_view name, int64_t& k) {
  const auto* row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) {
    return r.kind == kind && (r.rule == Rule::pass_at ? name.starts_with(r.name) : name == r.name);
  });
  if (row == kRows.end()) return nullptr;
  if (row->rule != Rule::pass_at) return row;
  name.remove_prefix(row->name.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), k);
  return error == std::errc() && end == name.data() + name.size() && k >= 1 ? row : nullptr;
}

std::string known_names(TaskKind kind) {
  std::vector<std::string> names;
  for (const Row& r : kRows)
    if (r.kind == kind) names.push_back(std::string(r.name) + (r.rule == Rule::pass_at ? "K" : ""));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Written as `name` or as {compute: rule, name: shown}.
void read_metric(YamlMap& yaml, const YAML::Node& node, TaskFile& out) {
  std::string written, shown;
  if (node.IsMap()) {
    YamlMap map = yaml.item("metrics", node);
    written = map.required("compute");
    shown = map.text("name", written);
    map.refuse_unknown();
  } else if (node.IsScalar()) {
    written = shown = node.Scalar();
  }
  int64_t k = 1;
  const Row* row = find_row(out.info.kind, written, k);
  if (row == nullptr)
    return yaml.problem(node, fmt::format("no metric '{}' for this kind; there are {}", written, known_names(out.info.kind)));
  if (k > out.generation.samples) yaml.problem(node, fmt::format("{} needs at least {} samples of each problem", written, k));
  if (row->rule == Rule::mc2 && !out.truths.given()) yaml.problem(node, "mc2 needs `truths`");
  for (size_t filter = 0; filter < std::max<size_t>(out.filters.size(), 1); ++filter) {
    out.rules.push_back({.rule = row->rule, .filter = filter, .k = k});
    out.info.metrics.push_back({.name = shown,
                                .filter = out.filters.empty() ? "none" : out.filters[filter].name,
                                .aggregation = row->aggregation,
                                .higher_is_better = row->higher_is_better});
  }
}

}  // namespace

void read_metrics(YamlMap& yaml, TaskFile& out) {
  const YAML::Node list = yaml.node("metrics");
  if (!list.IsDefined() || !list.IsSequence() || list.size() == 0) {
    yaml.problem("metrics", fmt::format("`metrics` must be a list of {}", known_names(out.info.kind)));
    return;
  }
  for (const auto& node : list) read_metric(yaml, node, out);
  const std::string headline = yaml.text("headline");
  if (headline.empty()) return;
  const auto& metrics = out.info.metrics;
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == headline || m.key() == headline; });
  if (found == metrics.end()) return yaml.problem("headline", fmt::format("headline '{}' is none of the task's metrics", headline));
  out.info.headline = static_cast<size_t>(found - metrics.begin());
}

}  // namespace hlat
