#include "plan/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "config/precision_row.h"
#include "model/kv_passes.h"
#include "parallel/mesh.h"
#include "plan/fp8_plan.h"
#include "plan/save_plan.h"

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

std::string region_table(const RankPlan& plan, bool of_stage) {
  const auto total = static_cast<double>(plan.memory.total());
  std::string s =
      fmt::format("{:<12} {:>20} {:>12} {:>8}\n", of_stage ? fmt::format("stage {}", plan.coord.pp) : "region", "bytes", "", "share");
  for (int i = 0; i < kPurposes; ++i) {
    const size_t bytes = plan.memory.bytes[static_cast<size_t>(i)];
    s += fmt::format("{:<12} {:>20} {:>12} {:>7.1f}%\n", name_of(static_cast<Purpose>(i)), bytes, format_bytes(bytes),
                     100.0 * static_cast<double>(bytes) / total);
  }
  return s + fmt::format("{:<12} {:>20} {:>12}\n", "total", plan.memory.total(), format_bytes(plan.memory.total()));
}

std::string host_text(const HostLines& lines) {
  std::string s = fmt::format("host memory outside the regions: process {}", format_bytes(lines.process));
  if (lines.loader > 0) s += fmt::format(", rows that the loader has ready {}", format_bytes(lines.loader));
  if (lines.communication > 0) s += fmt::format(", communication {}", format_bytes(lines.communication));
  if (lines.staging > 0) s += fmt::format(", checkpoint staging {}", format_bytes(lines.staging));
  return s + "\n";
}

// What evaluation keeps besides, where there is any.
std::string cache_text(const Config& config, const MemoryPlan& memory) {
  size_t bytes = 0;
  for (const RegionEntry& e : memory.peak[static_cast<size_t>(Purpose::saved)])
    if (e.label.ends_with(kKeysAndValues)) bytes += e.bytes;
  if (bytes == 0) return {};
  return fmt::format("of region saved, keys and values for evaluation: {} for {} tokens\n", format_bytes(bytes), kv_limits(config).slots);
}

// One rank of each pipeline stage.
std::string stage_table(const std::vector<RankPlan>& stages) {
  std::string s = fmt::format("{:<6}", "stage");
  for (int i = 0; i < kPurposes; ++i) s += fmt::format(" {:>10}", name_of(static_cast<Purpose>(i)));
  s += fmt::format(" {:>10}\n", "total");
  for (const RankPlan& p : stages) {
    s += fmt::format("{:<6}", p.coord.pp);
    for (const size_t bytes : p.memory.bytes) s += fmt::format(" {:>10}", format_bytes(bytes));
    s += fmt::format(" {:>10}\n", format_bytes(p.memory.total()));
  }
  return s + "\n";
}

// Sent by one rank in a step, on the stage where it is most.
std::string traffic_table(const std::vector<RankPlan>& stages) {
  std::string s = fmt::format("\n{:<8} {:>6} {:<16} {:>8} {:>14}\n", "traffic", "ranks", "", "calls", "bytes per rank");
  for (size_t axis = 0; axis < stages.front().traffic.size(); ++axis)
    for (int k = 0; k < kCommKinds; ++k) {
      const auto kind = static_cast<CommKind>(k);
      const auto cost = [&](const RankPlan& p) -> const CommCost& { return p.traffic[axis].traffic[kind]; };
      const RankPlan& most = *std::max_element(stages.begin(), stages.end(),
                                               [&](const RankPlan& a, const RankPlan& b) { return cost(a).bytes < cost(b).bytes; });
      const AxisTraffic& t = most.traffic[axis];
      if (t.size == 1 || cost(most).calls == 0 || kind == CommKind::recv) continue;
      s += fmt::format("{:<8} {:>6} {:<16} {:>8} {:>14}\n", t.axis, t.size, name_of(kind), cost(most).calls,
                       format_bytes(static_cast<uint64_t>(cost(most).bytes)));
    }
  return s;
}

}  // namespace

std::string mesh_text(const Config& config) {
  const ParallelConfig& p = config.parallel;
  const MeshShape shape = mesh_shape(p);
  if (shape.ranks() == 1) return "1 rank";
  std::string s = fmt::format("{} ranks: tp {} x pp {} x dp {}", shape.ranks(), p.tp, p.pp, p.dp);
  if (p.tp > 1) s += p.sequence ? ", sequence parallel" : ", no sequence parallelism";
  if (p.dp > 1) s += p.zero1 ? ", ZeRO-1" : ", no ZeRO-1";
  if (p.chunks > 1) s += fmt::format(", {} chunks per stage", p.chunks);
  return s;
}

std::string plan_table(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit) {
  const RankPlan& plan = fullest(stages);
  std::string s = fmt::format("{} parameters, {} layers x {}, {} tokens per ", format_count(static_cast<double>(plan.parameters)),
                              config.model.layers, config.model.hidden, plan.tokens);
  s += plan.use == ParamUse::training
           ? fmt::format("step ({} x {}, micro-batch {}), precision {}, recompute {}\n", config.train.global_batch, config.train.seq_len,
                         config.train.micro_batch, precision_words(config), config.train.recompute.str())
           : fmt::format("pass of an evaluation (micro-batches of {} x {}), precision {}, weights alone\n", config.train.micro_batch,
                         config.train.seq_len, precision_words(config));
  if (plan.use == ParamUse::training) s += fp8_text(config, plan);
  if (plan.mesh.ranks() > 1) s += mesh_text(config) + "\n";
  s += "\n";
  if (stages.size() > 1) s += stage_table(stages);
  s += region_table(plan, stages.size() > 1);
  s += cache_text(config, plan.memory);
  s += host_text(fit.lines(config, plan));
  s += save_text(save_plan(config, plan, fit));
  s += "\nlargest entries at the peak\n";
  for (const PeakEntry& e : largest(plan.memory, 10))
    s += fmt::format("  {:<10} {:>12}  {}{}\n", name_of(e.region), format_bytes(e.bytes), e.label,
                     e.count > 1 ? fmt::format(" (x{})", e.count) : "");
  const double tokens = static_cast<double>(plan.tokens);
  double executed = 0;
  for (const RankPlan& p : stages) executed += p.executed_flops() * plan.mesh.tp * plan.mesh.dp;
  s += fmt::format("\n{:<36} {:>12} {:>12}\n", "FLOPs", "per token", plan.use == ParamUse::training ? "per step" : "per pass");
  s += fmt::format("{:<36} {:>12} {:>12}\n", "model (MFU counts these)", format_flops(plan.flops_per_token),
                   format_flops(plan.flops_per_token * tokens));
  s +=
      fmt::format("{:<36} {:>12} {:>12}\n", "executed matmul and attention (HFU)", format_flops(executed / tokens), format_flops(executed));
  if (plan.mesh.ranks() > 1) s += traffic_table(stages);
  return s;
}

std::string micro_batch_text(const Config& config) {
  return fmt::format("train.micro_batch = auto is {}: the largest that fits, of what divides the {} sequences of a replica",
                     config.train.micro_batch, config.train.global_batch / config.parallel.dp);
}

std::string fit_text(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit, const PlanTarget& target) {
  const RankPlan& plan = fullest(stages);
  const double need = fit.needed(config, plan), host = fit.host_needed(config, plan);
  const auto bytes = [](double n) { return format_bytes(static_cast<uint64_t>(n)); };
  const std::string where = stages.size() > 1 ? fmt::format(" (stage {})", plan.coord.pp) : "";
  if (fit.fits(config, plan)) return fmt::format("fits on {}: {}{} of {}\n", fit.device, bytes(need), where, bytes(fit.available));
  std::string s;
  if (need > fit.available)
    s = fmt::format("does not fit on {}: {} needed{}, {} available, {} short\n", fit.device, bytes(need), where, bytes(fit.available),
                    bytes(need - fit.available));
  if (host > fit.host_available)
    s += fmt::format("does not fit in the host's memory: {} needed{} outside the device, {} available\n", bytes(host), where,
                     bytes(fit.host_available));
  const std::vector<Remedy> list = remedies(config, plan, fit, target);
  if (!list.empty()) s += "what would change it:\n";
  for (const Remedy& r : list) {
    const std::string ranks = r.ranks > plan.mesh.ranks() ? fmt::format(" on {} ranks, each with as much memory", r.ranks) : "";
    s += fmt::format("  {:<40} {:>12}  {}{}\n", r.change, format_bytes(r.bytes), r.fits ? "fits" : "does not fit", ranks);
  }
  if (std::none_of(list.begin(), list.end(), [](const Remedy& r) { return r.fits; }))
    s += "only a smaller model, a shorter train.seq_len or a device with more memory would fit\n";
  return s;
}

nlohmann::ordered_json plan_json(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit, const PlanTarget& target) {
  const RankPlan& plan = fullest(stages);
  const auto bytes_json = [](const MemoryPlan& memory) {
    nlohmann::ordered_json j;
    for (int i = 0; i < kPurposes; ++i) j[std::string(name_of(static_cast<Purpose>(i)))] = memory.bytes[static_cast<size_t>(i)];
    j["total"] = memory.total();
    return j;
  };
  nlohmann::ordered_json j;
  j["parameters"] = plan.parameters;
  j["tokens_per_step"] = plan.tokens;
  j["precision"] = precision_words(config);
  if (const Fp8Plan fp8 = fp8_plan(config); plan.use == ParamUse::training && fp8.parameters > 0)
    j["fp8"] = {{"parameters", fp8.parameters}, {"wide", fp8.wide_names}, {"saved_in_bf16", plan.memory[Purpose::saved] + plan.fp8_saves}};
  j["recompute"] = config.train.recompute.str();
  j["micro_batch"] = config.train.micro_batch;
  j["use"] = plan.use == ParamUse::training ? "training" : "evaluation";
  j["ranks"] = plan.mesh.ranks();
  j["tp"] = plan.mesh.tp;
  j["pp"] = plan.mesh.pp;
  j["dp"] = plan.mesh.dp;
  j["bytes"] = bytes_json(plan.memory);  // of the fullest stage
  const HostLines host = fit.lines(config, plan);
  j["host_bytes"] = host.communication;
  j["loader_bytes"] = host.loader;
  j["process_bytes"] = host.process;
  j["staging_bytes"] = host.staging;
  j["checkpoint"] = save_json(save_plan(config, plan, fit));
  for (const RankPlan& p : stages) {
    nlohmann::ordered_json stage{{"stage", p.coord.pp}, {"bytes", bytes_json(p.memory)}, {"executed_flops_per_rank", p.executed_flops()}};
    for (const AxisTraffic& a : p.traffic)
      if (a.size > 1) stage["bytes_sent_per_rank"][a.axis] = a.traffic.bytes_sent();
    j["stages"].push_back(std::move(stage));
  }
  for (const PeakEntry& e : largest(plan.memory, 10))
    j["largest"].push_back({{"region", name_of(e.region)}, {"label", e.label}, {"bytes", e.bytes}, {"count", e.count}});
  double executed = 0;
  for (const RankPlan& p : stages) executed += p.executed_flops() * plan.mesh.tp * plan.mesh.dp;
  j["flops_per_token"] = plan.flops_per_token;
  j["flops_per_step"] = plan.flops_per_token * static_cast<double>(plan.tokens);
  j["executed_flops_per_step"] = executed;
  j["device"] = fit.device;
  j["available_bytes"] = fit.available;
  j["needed_bytes"] = fit.needed(config, plan);
  j["fits"] = fit.fits(config, plan);
  j["remedies"] = nlohmann::ordered_json::array();
  if (fit.fits(config, plan)) return j;
  for (const Remedy& r : remedies(config, plan, fit, target))
    j["remedies"].push_back({{"change", r.change}, {"ranks", r.ranks}, {"bytes", r.bytes}, {"fits", r.fits}});
  return j;
}

}  // namespace hlat
