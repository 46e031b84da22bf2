#include "plan/search_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/table.h"

namespace hlat {

namespace {

std::string memory_words(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

std::vector<std::string> layout_row(const std::string& name, const ScoredLayout& l, const SearchShown& shown) {
  const ParallelConfig& p = l.config.parallel;
  const TrainConfig& t = l.config.train;
  std::vector<std::string> row{name,
                               fmt::format("{}", p.tp),
                               fmt::format("{}", p.pp),
                               fmt::format("{}", p.dp),
                               fmt::format("{}", p.chunks),
                               fmt::format("{}", t.micro_batch),
                               fmt::format("{}{}", t.recompute.str(), shown.precisions ? fmt::format(", {}", name_of(t.precision)) : ""),
                               p.tp == 1 ? "-" : (p.sequence ? "yes" : "no"),
                               p.dp == 1 ? "-" : (p.zero1 ? "yes" : "no"),
                               fmt::format("{}", t.loss_chunk),
                               p.pp == 1 ? "-" : (p.cuts.empty() ? "even" : "uneven")};
  if (!l.fits) {
    row.emplace_back("does not fit");
    row.resize(14);
    row.push_back(memory_words(l.needed));
    return row;
  }
  row.push_back(fmt::format("{:.4g}", l.seconds()));
  row.push_back(format_count(l.plan.tokens_per_s()));
  const std::optional<double> peak = shown.peak_flops(l.config);
  row.push_back(peak ? fmt::format("{:.1f}", 100 * l.plan.mfu(*peak)) : "?");
  row.push_back(memory_words(l.needed));
  if (shown.cost) {
    const LayoutCost cost = shown.cost(l.plan.tokens_per_s());
    for (const std::string& words : {cost.cpt, cost.dollars, cost.days}) row.push_back(words);
  }
  return row;
}

nlohmann::ordered_json layout_json(const ScoredLayout& l, const SearchShown& shown) {
  nlohmann::ordered_json j{{"keys", layout_keys(l.config)}, {"fits", l.fits}, {"bytes", l.bytes}, {"needed_bytes", l.needed}};
  if (!l.fits) return j;
  j["step_s"] = l.seconds();
  j["tokens_per_s"] = l.plan.tokens_per_s();
  if (const auto peak = shown.peak_flops(l.config)) j["mfu"] = l.plan.mfu(*peak);
  if (shown.cost) {
    const LayoutCost cost = shown.cost(l.plan.tokens_per_s());
    j["dollars_per_4m_tokens"] = cost.cpt;
    j["dollars"] = cost.dollars;
    j["days"] = cost.days;
  }
  return j;
}

}  // namespace

std::string search_text(const SearchResult& result, const SearchTarget& target, const SearchShown& shown) {
  std::string s = fmt::format("{} layouts of {} ranks looked at in {:.1f} s: {} do not fit, {} simulated\n\n", result.layouts,
                              target.limits.ranks, result.seconds, result.too_large, result.timed);
  if (result.best.empty())
    return s + fmt::format("nothing fits {}: the smallest, {}, needs {} of {}; {}\n", target.fit.device,
                           layout_words(result.smallest.config), memory_words(result.smallest.needed), memory_words(target.fit.available),
                           result.enough_ranks > 0 ? fmt::format("with full recomputation {} ranks would do", result.enough_ranks)
                                                   : std::string("nor does anything on 64 times as many ranks"));
  std::vector<std::vector<std::string>> rows{{"", "tp", "pp", "dp", "chunks", "micro", "recompute", "sequence", "zero1", "loss chunk",
                                              "cuts", "step, s", "tokens/s", "MFU, %", "memory"}};
  if (shown.cost) rows[0].insert(rows[0].end(), {"$ per 4M", "$", "days"});
  for (size_t i = 0; i < result.best.size(); ++i) rows.push_back(layout_row(fmt::format("{}", i + 1), result.best[i], shown));
  for (const auto& [name, layout] : shown.others) rows.push_back(layout_row(name, layout, shown));
  for (auto& row : rows) row.resize(rows[0].size());
  s += table_text(rows, "lrrrrrlrrrlrrrrrrr");
  if (const auto& cuts = result.best.front().config.parallel.cuts; !cuts.empty())
    s += fmt::format("parallel.cuts of the first: {}\n", fmt::join(cuts, ","));
  s += "\none choice changed in the first:\n";
  std::vector<std::vector<std::string>> lost;
  for (const RejectedLayout& n : result.neighbours) lost.push_back({"  " + n.words, n.why});
  return s + table_text(lost, "ll");
}

nlohmann::ordered_json search_json(const SearchResult& result, const SearchTarget& target, const SearchShown& shown) {
  nlohmann::ordered_json j{{"estimated", true},
                           {"ranks", target.limits.ranks},
                           {"layouts", result.layouts},
                           {"too_large", result.too_large},
                           {"simulated", result.timed},
                           {"seconds", result.seconds},
                           {"best", nlohmann::ordered_json::array()},
                           {"neighbours", nlohmann::ordered_json::array()}};
  for (const ScoredLayout& l : result.best) j["best"].push_back(layout_json(l, shown));
  for (const auto& [name, layout] : shown.others) j["others"][name] = layout_json(layout, shown);
  for (const RejectedLayout& n : result.neighbours)
    j["neighbours"].push_back({{"change", n.words},
                               {"keys", layout_keys(n.config)},
                               {"fits", n.fits},
                               {"step_s", n.fits ? nlohmann::ordered_json(n.seconds) : nlohmann::ordered_json()},
                               {"why", n.why}});
  if (result.best.empty()) {
    j["smallest"] = layout_json(result.smallest, shown);
    j["enough_ranks"] = result.enough_ranks;
  }
  return j;
}

}  // namespace hlat
