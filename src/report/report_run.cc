#include "report/report_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "config/load.h"
#include "report/step_clock.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

nlohmann::ordered_json object_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  auto json = nlohmann::ordered_json::parse(in, nullptr, false);
  return json.is_object() ? json : nlohmann::ordered_json();
}

MixturePart shares_of(int64_t from_step, const Weights& weights) {
  MixturePart part{.from_step = from_step, .shares = {}};
  double all = 0;
  for (const auto& [source, weight] : weights) all += weight;
  for (const auto& [source, weight] : weights)
    if (weight > 0 && all > 0) part.shares[source] = weight / all;
  return part;
}

// A config of another version may be refused.
std::optional<Config> config_in(const fs::path& file) try {
  if (!fs::exists(file)) return {};
  return load_config(file.string()).config;
} catch (const Error&) {
  return {};
}

std::vector<MixturePart> mixture_of(const Config& config) {
  Weights first;
  for (const SourceConfig& source : config.data.sources) first[source.id()] = source.weight;
  if (first.empty()) first["embedded"] = 1;
  std::vector<MixturePart> out = {shares_of(1, first)};
  for (const DataStage& stage : config.data.stages) {
    const int64_t step = stage.first_step(config.train.global_batch * config.train.seq_len);
    if (step <= out.back().from_step) out.pop_back();
    out.push_back(shares_of(step, stage.weights));
  }
  return out;
}

ReportRun read_report_run(const fs::path& folder) {
  ReportRun run{.name = {},
                .overview = read_run(folder),
                .steps = read_curves(folder / "metrics.jsonl"),
                .evaluations = read_curves(folder / "eval.jsonl"),
                .clock = {},
                .notes = {},
                .config = config_in(folder / "config.yaml"),
                .mixture = {},
                .plan = object_in(folder / "plan.json"),
                .ledger = object_in(folder / "ledger.json")};
  if (run.config) run.mixture = mixture_of(*run.config);
  run.clock = step_clock(run.steps, run.overview.run, run.overview.recorded_at);
  run.notes = read_notes(folder, run.overview.run.begin);
  return run;
}

// Its last `parts` parts, or all.
std::string ending(const fs::path& path, size_t parts) {
  std::vector<std::string> names;
  for (const fs::path& part : path)
    if (!part.empty()) names.push_back(part.string());
  std::string text;
  for (size_t i = names.size() > parts ? names.size() - parts : 0; i < names.size(); ++i) text += (text.empty() ? "" : "/") + names[i];
  return text;
}

}  // namespace

std::vector<fs::path> report_folders(const std::vector<std::string>& given) {
  std::vector<fs::path> out;
  for (const std::string& path : given) {
    std::error_code none;
    if (!fs::exists(path, none)) fail<UsageError>("there is no folder {}", path);
    if (!fs::is_directory(path, none)) fail<UsageError>("{} is a file, not a run folder", path);
    const std::vector<fs::path> found = run_folders(path);
    if (found.empty()) fail<UsageError>("{} is no run folder and holds none: no events.jsonl or metrics.jsonl is in it", path);
    for (const fs::path& folder : found)
      if (std::none_of(out.begin(), out.end(), [&](const fs::path& other) { return fs::equivalent(other, folder, none); }))
        out.push_back(folder);
  }
  return out;
}

std::string why_empty(const fs::path& folder, const RunCurves& steps) {
  if (steps.damaged == 0) return fmt::format("{} has no metrics yet: no step is recorded in its metrics.jsonl", folder.string());
  return fmt::format("{}: none of the {} line{} can be read", (folder / "metrics.jsonl").string(), steps.damaged,
                     steps.damaged == 1 ? "" : "s");
}

std::vector<ReportRun> read_report_runs(const std::vector<fs::path>& folders, bool may_be_empty) {
  std::vector<ReportRun> runs;
  const std::vector<std::string> names = short_names(folders);
  for (const fs::path& folder : folders) {
    runs.push_back(read_report_run(folder));
    runs.back().name = names[runs.size() - 1];
  }
  const auto is_empty = [](const ReportRun& run) { return run.steps.step.empty(); };
  if (may_be_empty) return runs;
  if (std::all_of(runs.begin(), runs.end(), is_empty)) {
    std::vector<std::string> all;
    for (const ReportRun& run : runs) all.push_back(why_empty(run.overview.folder, run.steps));
    fail<UsageError>("{}", fmt::join(all, "\n"));
  }
  std::erase_if(runs, is_empty);
  return runs;
}

std::vector<std::string> short_names(const std::vector<fs::path>& folders) {
  constexpr size_t kDeepest = 16;
  std::vector<fs::path> whole;  // "." and "a/.." have names too
  for (const fs::path& folder : folders) whole.push_back(fs::absolute(folder).lexically_normal());
  std::vector<std::string> names;
  for (const fs::path& folder : whole) {
    size_t parts = 1;
    const auto is_shared = [&](const fs::path& other) { return other != folder && ending(other, parts) == ending(folder, parts); };
    while (parts < kDeepest && std::any_of(whole.begin(), whole.end(), is_shared)) ++parts;
    names.push_back(ending(folder, parts));
  }
  return names;
}

}  // namespace hlat
