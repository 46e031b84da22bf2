// Rules of the data section.
#include <numeric>

#include "config/checker.h"
#include "config/nearest.h"

namespace hlat {
namespace {

std::string key(std::string_view list, size_t item, std::string_view leaf) { return fmt::format("data.{}[{}].{}", list, item, leaf); }

double sum_of(const Weights& weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0, [](double sum, const auto& item) { return sum + item.second; });
}

void source_rules(Checker& check, const Config& c) {
  const DataConfig& d = c.data;
  for (size_t i = 0; i < d.sources.size(); ++i)
    check.rule({key("sources", i, "name"), key("sources", i, "path")}, [&]() -> std::string {
      for (size_t j = 0; j < i; ++j)
        if (d.sources[j].id() == d.sources[i].id())
          return fmt::format("data.sources[{}] is called {} too; give each its own name", j, d.sources[i].id());
      return {};
    });
  if (d.sources.empty()) return;
  check.rule({"data.tokenizer", "data.sources"},
             [&]() -> std::string { return d.tokenizer.empty() ? "data.sources needs a tokenizer: give its file" : ""; });
  std::vector<std::string> weights;
  double sum = 0;
  for (size_t i = 0; i < d.sources.size(); ++i) weights.push_back(key("sources", i, "weight")), sum += d.sources[i].weight;
  const bool used = d.stages.empty() || d.stages.front().first_step(c.train.global_batch * c.train.seq_len) > 1;
  check.rule(weights, [&]() -> std::string { return sum > 0 || !used ? "" : "all sources have weight 0, so there is nothing to read"; });
}

void stage_rules(Checker& check, const Config& c) {
  const DataConfig& d = c.data;
  const int64_t tokens = c.train.global_batch * c.train.seq_len;
  std::vector<std::string_view> names;
  for (const SourceConfig& s : d.sources) names.push_back(s.id());
  for (size_t i = 0; i < d.stages.size(); ++i) {
    const DataStage& stage = d.stages[i];
    check.rule({key("stages", i, "from_step"), key("stages", i, "from_tokens")}, [&]() -> std::string {
      return stage.from_step > 0 && stage.from_tokens > 0 ? "a stage begins by from_step or by from_tokens, not by both" : "";
    });
    check.rule({key("stages", i, "weights")}, [&]() -> std::string {
      for (const auto& [name, weight] : stage.weights) {
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        const std::string_view best = nearest(name, names);
        return fmt::format("no source is called {}{}", name, best.empty() ? "" : fmt::format("; did you mean {}?", best));
      }
      return sum_of(stage.weights) > 0 ? "" : "must give at least one source a weight above 0";
    });
    if (i == 0) continue;
    const std::string_view own = stage.from_tokens > 0 ? "from_tokens" : "from_step";
    check.rule({key("stages", i, own), key("stages", i - 1, "from_step"), key("stages", i - 1, "from_tokens"), "train.global_batch",
                "train.seq_len"},
               [&]() -> std::string {
                 const int64_t before = d.stages[i - 1].first_step(tokens), here = stage.first_step(tokens);
                 if (here > before) return {};
                 return fmt::format("the stage begins with step {}, but data.stages[{}] before it with step {}; stages must be in order",
                                    here, i - 1, before);
               });
  }
}

}  // namespace

void data_rules(Checker& check, const Config& c) {
  const DataConfig& d = c.data;
  source_rules(check, c);
  stage_rules(check, c);
  check.rule({"data.validate_every", "data.validation"}, [&]() -> std::string {
    return d.validate_every == 0 || d.validation > 0 ? "" : "needs data.validation above 0: no document is held out";
  });
  check.rule({"data.validate_rows", "train.micro_batch", "parallel.dp"}, [&]() -> std::string {
    const int64_t unit = c.train.micro_batch * std::max<int64_t>(1, c.parallel.dp);
    if (d.validate_rows % unit == 0) return {};
    return fmt::format("must be a multiple of {}: train.micro_batch ({}){}", unit, c.train.micro_batch,
                       c.parallel.dp > 1 ? fmt::format(" x parallel.dp ({})", c.parallel.dp) : "");
  });
}

}  // namespace hlat
