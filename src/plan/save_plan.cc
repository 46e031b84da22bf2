#include "plan/save_plan.h"

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "checkpoint/staging.h"
#include "plan/fp8_plan.h"

namespace hlat {

namespace {

// What a checkpoint has of all parameters. Of those in FP8 the master is the weight.
struct SavedBytes {
  uint64_t weights = 0, masters = 0, moments = 0;
};
SavedBytes saved_bytes(const Config& config, uint64_t parameters) {
  const Precision p = precision_of(config);
  const uint64_t fp8 = static_cast<uint64_t>(fp8_plan(config).parameters), others = parameters - fp8;
  return {.weights = others * size_of(p.weight) + fp8 * size_of(p.master ? DType::f32 : p.weight),
          .masters = p.master ? others * size_of(DType::f32) : 0,
          .moments = 2 * parameters * size_of(p.moment)};
}

std::string number_of(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

}  // namespace

SavePlan save_plan(const Config& config, const RankPlan& plan, const Fit& fit) {
  const CheckpointConfig& c = config.checkpoint;
  SavePlan s;
  s.saves = plan.use == ParamUse::training && saves_anything(c);
  if (!s.saves) return s;
  const SavedBytes saved = saved_bytes(config, static_cast<uint64_t>(plan.parameters));
  s.bytes = saved.weights + saved.masters + saved.moments;
  s.kept_bytes = static_cast<uint64_t>(c.keep + 1) * s.bytes;
  if (c.weights_every_tokens > 0) s.weights_bytes = static_cast<uint64_t>(plan.parameters) * size_of(DType::bf16);
  constexpr double kMinutesOfADay = 24 * 60;
  if (c.minutes > 0)
    s.bytes_per_day = static_cast<double>(s.bytes) * kMinutesOfADay / c.minutes;
  else if (c.every > 0)
    s.bytes_per_1000_steps = static_cast<double>(s.bytes) * 1000 / static_cast<double>(c.every);
  s.rank_bytes = plan.saved_bytes;
  s.staging_bytes = fit.lines(config, plan).staging;
  s.keep = c.keep;
  s.keep_every = c.keep_every;
  s.weights_every_tokens = c.weights_every_tokens;
  return s;
}

std::string save_text(const SavePlan& plan) {
  if (!plan.saves) return {};
  std::string s = fmt::format("checkpoints: {} per save", format_bytes(plan.bytes));
  if (plan.bytes_per_day) s += fmt::format(", {} per day", number_of(*plan.bytes_per_day));
  if (plan.bytes_per_1000_steps) s += fmt::format(", {} per 1000 steps", number_of(*plan.bytes_per_1000_steps));
  s += fmt::format("; at most {} on the disk: the last {} and one that is being saved", format_bytes(plan.kept_bytes), plan.keep);
  if (plan.keep_every > 0) s += fmt::format(", besides every {}th step's", plan.keep_every);
  if (plan.weights_bytes > 0)
    s += fmt::format(", and weights of {} for every {} tokens", format_bytes(plan.weights_bytes),
                     format_count(static_cast<double>(plan.weights_every_tokens)));
  s += "\n";
  if (const uint64_t waits_for = plan.waits_for_bytes(); waits_for > 0)
    s += fmt::format(
        "a save copies {} of a rank through {} of staging, in rounds: the update waits until {} of it are written, {} where the disk "
        "takes 1 GB/s from each rank (checkpoint.staging_mb)\n",
        format_bytes(plan.rank_bytes), format_bytes(plan.staging_bytes), format_bytes(waits_for),
        format_duration(static_cast<double>(waits_for) * 1e-9));
  return s;
}

nlohmann::ordered_json save_json(const SavePlan& plan) {
  if (!plan.saves) return nullptr;
  nlohmann::ordered_json j{{"bytes_per_save", plan.bytes}, {"kept_bytes", plan.kept_bytes}};
  if (plan.bytes_per_day) j["bytes_per_day"] = *plan.bytes_per_day;
  if (plan.bytes_per_1000_steps) j["bytes_per_1000_steps"] = *plan.bytes_per_1000_steps;
  if (plan.weights_bytes > 0) j["weights_bytes"] = plan.weights_bytes;
  j["rank_bytes"] = plan.rank_bytes;
  j["update_waits_for_bytes"] = plan.waits_for_bytes();
  return j;
}

}  // namespace hlat
