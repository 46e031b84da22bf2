#include "burnin/gpu_check.h"

#include <fmt/format.h>

namespace hlat {

namespace {

template <class Number>
nlohmann::json or_null(const std::optional<Number>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json packed_state(const GpuState& s) {
  return {{"ecc_corrected", or_null(s.corrected)},
          {"ecc_uncorrected", or_null(s.uncorrected)},
          {"ecc_uncorrected_of_life", or_null(s.total_uncorrected)},
          {"remapped_rows", or_null(s.remapped_rows)},
          {"remap_failed", s.remap_failed},
          {"slowed_by", or_null(s.slowed_by)},
          {"celsius", or_null(s.celsius)},
          {"watts", or_null(s.watts)},
          {"limit_watts", or_null(s.limit_watts)},
          {"sm_mhz", or_null(s.sm_mhz)},
          {"max_sm_mhz", or_null(s.max_sm_mhz)}};
}

// What a rank tells: its GPU's state, or why there is none to tell.
nlohmann::json told_of_gpu(const CheckRun& run, std::vector<Finding>& own) {
  if (!run.has_gpu()) return {{"why", "no GPU is used"}};
  const Nvml nvml;
  if (!nvml.usable()) return {{"why", nvml.why()}};
  const auto state = nvml.state(run.backend.device_id());
  if (!state) return {{"why", "NVML does not know this GPU"}};
  own = judge_gpu(*state, run.finding("gpu", static_cast<size_t>(run.rank()), ""));
  return {{"state", packed_state(*state)}};
}

std::string shown_of(const nlohmann::json& state, const char* name) { return state[name].is_null() ? "-" : state[name].dump(); }

}  // namespace

std::vector<Finding> judge_gpu(const GpuState& state, const Finding& about) {
  std::vector<Finding> findings;
  const auto add = [&](Severity severity, const std::string& words) {
    findings.push_back(about);
    findings.back().severity = severity;
    findings.back().words = words;
  };
  if (state.uncorrected.value_or(0) > 0)
    add(Severity::fault, fmt::format("has {} uncorrected ECC errors since its driver was loaded", *state.uncorrected));
  if (state.remap_failed) add(Severity::fault, "has bad memory that it could not replace");
  if (state.corrected.value_or(0) > 0)
    add(Severity::warning, fmt::format("has {} corrected ECC errors since its driver was loaded", *state.corrected));
  if (const std::string slowed = slowed_text(state.slowed_by.value_or(0)); !slowed.empty()) add(Severity::fault, "slow: " + slowed);
  return findings;
}

PartReport check_gpu(const CheckRun& run) {
  run.say("gpu");
  std::vector<Finding> own;
  nlohmann::json told = told_of_gpu(run, own);
  told["findings"] = nlohmann::json::array();
  for (const Finding& f : own) told["findings"].push_back({{"words", f.words}, {"fault", f.severity == Severity::fault}});
  const auto all = gather_json(run.world(), told);
  PartReport report{.name = "gpu", .alignment = "rlrrrrrr"};
  report.rows.push_back({"rank", "host", "ECC corrected", "uncorrected", "C", "W", "SM MHz", "most"});
  report.json["ranks"] = nlohmann::ordered_json::array();
  for (size_t r = 0; r < all.size(); ++r) {
    const nlohmann::json& j = all[r];
    report.json["ranks"].push_back(
        {{"rank", r}, {"host", run.hosts[r]}, {"state", j.value("state", nlohmann::json())}, {"why", j.value("why", "")}});
    for (const nlohmann::json& f : j["findings"])
      report.findings.push_back(run.finding("gpu", r, f["words"], f["fault"].get<bool>() ? Severity::fault : Severity::warning));
    if (!j.contains("state")) continue;
    const nlohmann::json& s = j["state"];
    report.rows.push_back({fmt::format("{}", r), run.hosts[r], shown_of(s, "ecc_corrected"), shown_of(s, "ecc_uncorrected"),
                           shown_of(s, "celsius"), shown_of(s, "watts"), shown_of(s, "sm_mhz"), shown_of(s, "max_sm_mhz")});
  }
  const size_t known = report.rows.size() - 1;
  report.title = fmt::format("{} of {} ranks have a GPU that NVML tells of", known, all.size());
  if (known == 0) {
    report.title = all[0].value("why", "");
    report.rows.clear();
  }
  return report;
}

}  // namespace hlat
