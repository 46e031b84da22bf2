#include "plan/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace hlat {

namespace {

struct PeakEntry {
  Purpose region;
  std::string label;
  size_t bytes = 0;
  int64_t count = 0;
};

// "layers.12.mlp.down" and "block 12 qkv" differ between layers only in a number.
std::string without_layer(const std::string& label) {
  for (const std::string_view prefix : {"layers.", "block "}) {
    if (!label.starts_with(prefix)) continue;
    const size_t end = label.find_first_not_of("0123456789", prefix.size());
    if (end > prefix.size() && end != std::string::npos) return std::string(prefix) + "*" + label.substr(end);
  }
  return label;
}

// What fills the regions at their peaks, the same thing in all layers taken together, largest first.
std::vector<PeakEntry> largest(const MemoryPlan& memory, size_t count) {
  std::map<std::pair<Purpose, std::string>, PeakEntry> groups;
  for (int i = 0; i < kPurposes; ++i)
    for (const RegionEntry& e : memory.peak[static_cast<size_t>(i)]) {
      const auto region = static_cast<Purpose>(i);
      const std::string label = without_layer(e.label);
      PeakEntry& group = groups[{region, label}];
      group = {region, label, group.bytes + e.bytes, group.count + 1};
    }
  std::vector<PeakEntry> all;
  for (auto& [key, group] : groups) all.push_back(group);
  std::stable_sort(all.begin(), all.end(), [](const PeakEntry& a, const PeakEntry& b) { return a.bytes > b.bytes; });
  all.resize(std::min(all.size(), count));
  return all;
}

// A config with one thing changed, for "what to change".
struct Change {
  std::string text;
  Config config;
};

std::vector<Change> changes(const Config& config) {
  std::vector<Change> list;
  const auto add = [&](const std::string& text, const auto& edit) {
    Config c = config;
    edit(c);
    list.push_back({text, c});
  };
  const int64_t micro = config.train.micro_batch;
  if (micro > 1) add("train.micro_batch=1", [](Config& c) { c.train.micro_batch = 1; });
  const auto recompute = [&](RecomputeKind kind) {
    const Recompute r{.kind = kind, .every = 0};
    if (!(config.train.recompute == r)) add("train.recompute=" + r.str(), [&](Config& c) { c.train.recompute = r; });
  };
  recompute(RecomputeKind::selective);
  recompute(RecomputeKind::full);
  if (config.train.loss_chunk > 256) add("train.loss_chunk=256", [](Config& c) { c.train.loss_chunk = 256; });
  if (config.train.precision != PrecisionKind::bf16_sr)
    add("train.precision=bf16_sr", [](Config& c) { c.train.precision = PrecisionKind::bf16_sr; });
  add("all of these", [](Config& c) {
    c.train.micro_batch = 1;
    c.train.recompute = {.kind = RecomputeKind::full, .every = 0};
    c.train.loss_chunk = std::min<int64_t>(c.train.loss_chunk, 256);
    c.train.precision = PrecisionKind::bf16_sr;
  });
  return list;
}

}  // namespace

std::string plan_table(const Config& config, const Plan& plan) {
  std::string s = fmt::format("{} parameters, {} layers x {}, {} tokens per step ({} x {}, micro-batch {}), precision {}, recompute {}\n\n",
                              format_count(static_cast<double>(plan.parameters)), config.model.layers, config.model.hidden,
                              plan.tokens_per_step, config.train.global_batch, config.train.seq_len, config.train.micro_batch,
                              name_of(config.train.precision), config.train.recompute.str());
  s += fmt::format("{:<12} {:>20} {:>12} {:>8}\n", "region", "bytes", "", "share");
  const auto total = static_cast<double>(plan.memory.total());
  for (int i = 0; i < kPurposes; ++i) {
    const size_t bytes = plan.memory.bytes[static_cast<size_t>(i)];
    s += fmt::format("{:<12} {:>20} {:>12} {:>7.1f}%\n", name_of(static_cast<Purpose>(i)), bytes, format_bytes(bytes),
                     100.0 * static_cast<double>(bytes) / total);
  }
  s +=
      fmt::format("{:<12} {:>20} {:>12}\n\nlargest entries at the peak\n", "total", plan.memory.total(), format_bytes(plan.memory.total()));
  for (const PeakEntry& e : largest(plan.memory, 10))
    s += fmt::format("  {:<10} {:>12}  {}{}\n", name_of(e.region), format_bytes(e.bytes), e.label,
                     e.count > 1 ? fmt::format(" (x{})", e.count) : "");
  const double tokens = static_cast<double>(plan.tokens_per_step);
  s += fmt::format("\n{:<36} {:>12} {:>12}\n", "FLOPs", "per token", "per step");
  s += fmt::format("{:<36} {:>12} {:>12}\n", "model (MFU counts these)", format_flops(plan.model_flops_per_token),
                   format_flops(plan.model_flops_per_token * tokens));
  s += fmt::format("{:<36} {:>12} {:>12}\n", "executed matmul and attention (HFU)", format_flops(plan.executed_flops() / tokens),
                   format_flops(plan.executed_flops()));
  return s;
}

std::string fit_text(const Config& config, const Plan& plan, const Fit& fit, const Ops* scratch_model) {
  const double need = static_cast<double>(plan.memory.total());
  const std::string have = format_bytes(static_cast<uint64_t>(fit.available));
  if (fit.fits(plan)) return fmt::format("fits on {}: {} of {}\n", fit.device, format_bytes(plan.memory.total()), have);
  std::string s = fmt::format("does not fit on {}: {} needed, {} available, {} short\n", fit.device, format_bytes(plan.memory.total()),
                              have, format_bytes(static_cast<uint64_t>(need - fit.available)));
  s += "what would change it:\n";
  bool any = false;
  for (const Change& c : changes(config)) {
    const Plan other = dry_run(c.config, scratch_model);
    any = any || fit.fits(other);
    s += fmt::format("  {:<28} {:>12}  {}\n", c.text, format_bytes(other.memory.total()), fit.fits(other) ? "fits" : "does not fit");
  }
  if (!any) s += "  none of these is enough: take a smaller model, a shorter train.seq_len or a device with more memory\n";
  return s;
}

nlohmann::ordered_json plan_json(const Config& config, const Plan& plan, const Fit& fit) {
  nlohmann::ordered_json j;
  j["parameters"] = plan.parameters;
  j["tokens_per_step"] = plan.tokens_per_step;
  j["precision"] = name_of(config.train.precision);
  j["recompute"] = config.train.recompute.str();
  for (int i = 0; i < kPurposes; ++i) j["bytes"][std::string(name_of(static_cast<Purpose>(i)))] = plan.memory.bytes[static_cast<size_t>(i)];
  j["bytes"]["total"] = plan.memory.total();
  for (const PeakEntry& e : largest(plan.memory, 10))
    j["largest"].push_back({{"region", name_of(e.region)}, {"label", e.label}, {"bytes", e.bytes}, {"count", e.count}});
  j["flops_per_token"] = plan.model_flops_per_token;
  j["flops_per_step"] = plan.model_flops_per_token * static_cast<double>(plan.tokens_per_step);
  j["executed_flops_per_step"] = plan.executed_flops();
  j["device"] = fit.device;
  j["available_bytes"] = fit.available;
  j["fits"] = fit.fits(plan);
  return j;
}

}  // namespace hlat
