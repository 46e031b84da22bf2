#include "cli/config_warnings.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/precision_row.h"
#include "config/run_length.h"
#include "optim/learning_rate.h"
#include "param/precision.h"

namespace hlat {
namespace {

using Warnings = std::vector<std::string>;

constexpr int64_t kShallow = 4;  // layers that train as well without scaled init (bench/results/stability-2026-11.md)

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

// What the HLAT study found to go wrong (docs/precision.md).
void warn_of_precision(const Config& c, Warnings& out) {
  const PrecisionConfig row = precision_row(c);
  const bool no_masters = row.weights == "bf16" && row.masters == "none";
  if (no_masters && row.round_weights == "nearest")
    out.push_back(fmt::format("train.precision = {} rounds every update to the nearest bf16 and is known to diverge; {} do not",
                              precision_words(c), row.products == "fp8" ? "fp8_sr and fp8" : "bf16_sr and mixed"));
  if (row.masters == "f32" && c.parallel.dp > 1 && !c.parallel.zero1)
    out.push_back(
        fmt::format("master weights without parallel.zero1: every replica holds {} more bytes per parameter; parallel.zero1=true shares "
                    "them out",
                    size_of(DType::f32) + 2 * size_of(precision_of(c).moment)));
  if (c.optim.beta2 >= 0.99 && (no_masters || row.moments == "bf16"))
    out.push_back(fmt::format(
        "optim.beta2 = {} in bf16 was unstable and slow in HLAT's long runs: (1 - beta2) of a gradient's square is close to what "
        "bf16 rounds away; 0.95 was not (docs/best-practices.md)",
        c.optim.beta2));
  if (!c.model.scaled_init && c.model.layers > kShallow)
    out.push_back(
        fmt::format("model.scaled_init = false is known to train worse, and to diverge later, in deep models (this one has {} layers)",
                    c.model.layers));
  if (!row.keyed_noise)
    out.push_back("precision.keyed_noise = false lets replicas of weights drift apart, and their comparison is left out: for studies only");
}

}  // namespace

std::vector<std::string> config_warnings(const Config& config) {
  Warnings out;
  warn_of_precision(config, out);
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
