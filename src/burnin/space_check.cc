#include "burnin/space_check.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/format.h"
#include "base/memory_limits.h"
#include "model/llama.h"
#include "plan/save_plan.h"
#include "runtime/existing_folder.h"
#include "runtime/start_point.h"

namespace hlat {

SpaceNeeds space_needs(const Config& config) {
  RankPlan plan;
  plan.parameters = parameter_count(config.model);
  const SavePlan saves = save_plan(config, plan, {});
  return {.save = saves.bytes, .kept = saves.kept_bytes};
}

std::optional<SpaceVerdict> judge_space(const std::string& folder, uint64_t free, const SpaceNeeds& needs) {
  if (free < needs.save)
    return SpaceVerdict{
        .words = fmt::format("short: {} free in {}, and a checkpoint takes {}", format_bytes(free), folder, format_bytes(needs.save)),
        .severity = Severity::fault};
  if (free < needs.kept)
    return SpaceVerdict{.words = fmt::format("short: {} free in {}, and checkpoints take up to {} at a time", format_bytes(free), folder,
                                             format_bytes(needs.kept))};
  return {};
}

PartReport check_space(const CheckRun& run) {
  run.say("space");
  const std::filesystem::path folder = existing_folder(checkpoint_dir(run.config));
  std::error_code error;
  const uint64_t free = std::filesystem::space(folder, error).available;
  const auto all = gather_json(run.world(), {{"speaks", run.speaks_for_host()},
                                             {"folder", folder.string()},
                                             {"free", error ? 0 : free},
                                             {"error", error ? error.message() : ""},
                                             {"memory", host_memory_available()}});
  const SpaceNeeds needs = space_needs(run.config);
  PartReport report{.name = "space", .alignment = "rllrr"};
  report.title = needs.save == 0
                     ? "no checkpoints are saved"
                     : fmt::format("a checkpoint takes {}, all that are kept {}", format_bytes(needs.save), format_bytes(needs.kept));
  report.rows.push_back({"rank", "host", "folder", "free", "host memory left"});
  report.json = {{"checkpoint_bytes", needs.save}, {"kept_bytes", needs.kept}, {"hosts", nlohmann::ordered_json::array()}};
  for (size_t r = 0; r < all.size(); ++r) {
    const nlohmann::json& j = all[r];
    if (!j["speaks"].get<bool>()) continue;
    const std::string where = j["folder"], problem = j["error"];
    const uint64_t left = j["free"];
    report.rows.push_back({fmt::format("{}", r), run.hosts[r], where, format_bytes(left), format_bytes(j["memory"].get<uint64_t>())});
    report.json["hosts"].push_back(
        {{"rank", r}, {"host", run.hosts[r]}, {"folder", where}, {"free_bytes", left}, {"host_memory_bytes", j["memory"]}});
    if (!problem.empty())
      report.findings.push_back(run.finding("space", r, fmt::format("of {} cannot be asked for: {}", where, problem)));
    else if (const auto verdict = judge_space(where, left, needs))
      report.findings.push_back(run.finding("space", r, verdict->words, verdict->severity));
  }
  return report;
}

}  // namespace hlat
