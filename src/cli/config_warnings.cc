#include "cli/config_warnings.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/run_length.h"
#include "optim/learning_rate.h"

namespace hlat {
namespace {

using Warnings = std::vector<std::string>;

void warn_of_stages(const Config& c, Warnings& out) {
  for (size_t i = 0; i < c.data.stages.size(); ++i) {
    const int64_t first = c.data.stages[i].first_step(tokens_per_step(c.train));
    if (first > c.train.steps)
      out.push_back(fmt::format("data.stages[{}] begins with step {}, after the last step of the run ({}): its weights are never used", i,
                                first, c.train.steps));
  }
}

void warn_of_schedule(const Config& c, Warnings& out) {
  const OptimConfig& o = c.optim;
  const int64_t last = c.train.steps, end = o.schedule_steps;
  if (o.warmup > last)
    out.push_back(
        fmt::format("optim.warmup ({}) is longer than the run ({} steps): the learning rate reaches {:.3g}, not optim.lr ({:.3g})",
                    o.warmup, last, learning_rate(o, last, std::max(end, last)), o.lr));
  else if (end > last && learning_rate(o, last, end) > learning_rate(o, end, end))
    out.push_back(
        fmt::format("optim.schedule_steps ({}) is after the last step of the run ({}): the learning rate ends at {:.3g}, not at "
                    "{:.3g}",
                    end, last, learning_rate(o, last, end), learning_rate(o, end, end)));
}

void warn_of_sources(const Config& c, Warnings& out) {
  const DataConfig& d = c.data;
  if (d.sources.empty() && !d.tokenizer.empty() && d.embedded)
    out.push_back("data.tokenizer is given, but no data.sources: the run trains on the embedded corpus, with a tokenizer of its own");
  for (size_t i = 0; i < d.sources.size(); ++i) {
    const std::string& name = d.sources[i].id();
    const bool used = d.sources[i].weight > 0 || std::any_of(d.stages.begin(), d.stages.end(), [&](const DataStage& stage) {
                        const auto place = stage.weights.find(name);
                        return place != stage.weights.end() && place->second > 0;
                      });
    if (!used) out.push_back(fmt::format("data.sources[{}] ({}) has weight 0 and is never read", i, name));
  }
}

}  // namespace

std::vector<std::string> config_warnings(const Config& config) {
  Warnings out;
  if (config.train.precision == PrecisionKind::bf16)
    out.push_back("train.precision = bf16 rounds every update to the nearest bf16 and is known to diverge; bf16_sr and mixed do not");
  if (steps_known(config.train)) {
    warn_of_stages(config, out);
    warn_of_schedule(config, out);
    if (config.data.validate_every > config.train.steps)
      out.push_back(fmt::format("data.validate_every ({}) is longer than the run ({} steps): it is validated at the end only",
                                config.data.validate_every, config.train.steps));
  }
  warn_of_sources(config, out);
  return out;
}

}  // namespace hlat
