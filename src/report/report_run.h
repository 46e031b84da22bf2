// All that a report shows of one run, read from its folder as it is now. Files that are missing or damaged leave their part empty.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "record/run_curves.h"
#include "record/run_overview.h"
#include "report/run_notes.h"

namespace hlat {

// Shares of the tokens by source, as the config has them from a step on.
struct MixturePart {
  int64_t from_step = 1;
  std::map<std::string, double> shares;
};

struct ReportRun {
  std::string name = {};  // differs from those of the report's other runs
  RunOverview overview = {};
  RunCurves steps = {}, evaluations = {};  // metrics.jsonl, eval.jsonl
  std::vector<double> clock = {};          // by line of steps: seconds since the run began
  RunNotes notes = {};
  std::optional<Config> config = {};  // config.yaml; none: there is none, or it is of another version
  std::vector<MixturePart> mixture = {};
  nlohmann::ordered_json plan = {}, ledger = {};  // plan.json, ledger.json; null: there is none
};

// Run folders that the given folders are or hold, each once, in this order. UsageError: a path that is no folder, or has no run.
std::vector<std::filesystem::path> report_folders(const std::vector<std::string>& given);

// Why a folder's metrics.jsonl, which has no step, has none: it is none yet, or damaged.
std::string why_empty(const std::filesystem::path& folder, const RunCurves& steps);

// Runs without a step are left out, unless that may be. UsageError: none has one.
std::vector<ReportRun> read_report_runs(const std::vector<std::filesystem::path>& folders, bool may_be_empty = false);

// The shortest ends of paths that tell them apart.
std::vector<std::string> short_names(const std::vector<std::filesystem::path>& folders);

}  // namespace hlat
