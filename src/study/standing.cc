#include "study/standing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/exit_code.h"
#include "checkpoint/checkpoint_folder.h"
#include "config/free_keys.h"
#include "config/load.h"
#include "record/run_journal.h"
#include "record/run_overview.h"

namespace hlat {
namespace {

// The config that a folder's run had, where it can be read.
struct RecordedConfig {
  bool missing = false;
  std::string problem = {};  // why it cannot be read
  std::optional<Config> config = {};
};

RecordedConfig recorded_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.yaml";
  std::error_code none;
  if (std::filesystem::status(file, none).type() == std::filesystem::file_type::not_found) return {.missing = true};
  try {
    return {.config = load_config(file.string()).config};
  } catch (const UsageError& e) {  // damaged, or of another version
    const std::string_view words = e.what();
    return {.problem =
                fmt::format("the config of its run is not known: {}; --fresh sets the run aside", words.substr(0, words.find('\n')))};
  }
}

// Why the records of a folder cannot be read; empty: they can, or there are none.
std::string why_unreadable(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const auto words = [](const fs::path& path, const std::error_code& error, std::string_view wanted) {
    return error ? fmt::format("cannot read {}: {}", path.string(), error.message()) : fmt::format("{} is no {}", path.string(), wanted);
  };
  std::error_code error;
  const fs::file_type type = fs::status(folder, error).type();
  if (type == fs::file_type::not_found) return "";
  if (type != fs::file_type::directory) return words(folder, error, "folder");
  for (const char* name : {"events.jsonl", "metrics.jsonl"}) {
    const fs::file_type file = fs::status(folder / name, error).type();
    if (file == fs::file_type::not_found) continue;
    if (file != fs::file_type::regular) return words(folder / name, error, "file");
    errno = 0;
    if (!std::ifstream(folder / name)) return words(folder / name, {errno, std::generic_category()}, "readable file");
  }
  return "";
}

bool has_checkpoints(const Config& config) {
  const auto has = [](const std::filesystem::path& folder) { return !checkpoint_steps(folder).empty(); };
  return has(std::filesystem::path(config.run.dir) / "checkpoints") || (!config.checkpoint.dir.empty() && has(config.checkpoint.dir));
}

RunStanding read_standing(const PlannedRun& run) {
  const std::filesystem::path folder = run.config.run.dir;
  if (std::string why = why_unreadable(folder); !why.empty()) return {.standing = Standing::unreadable, .reason = std::move(why)};
  if (!is_run_folder(folder)) {
    const std::filesystem::path& saves = run.config.checkpoint.dir;
    if (saves.empty() || checkpoint_steps(saves).empty()) return {};
    return {.standing = Standing::taken, .reason = fmt::format("{} has checkpoints of another run", saves.string())};
  }
  const RunOverview seen = read_run(folder);
  RunStanding out{.standing = Standing::cut_off, .step = seen.step};
  const RecordedConfig recorded = recorded_config(folder);
  if (recorded.config) out.changes = contradictions(*recorded.config, run.config);
  const auto end = std::find_if(seen.events.rbegin(), seen.events.rend(),
                                [](const RunEvent& e) { return e.kind == "end" || e.kind == "start" || e.kind == "fault"; });
  if (end != seen.events.rend()) out.reason = end->reason;
  const bool ended = end != seen.events.rend() && end->kind == "end";
  if (seen.state == RunState::running)
    out.standing = Standing::running;
  else if (!recorded.problem.empty())
    out = {.standing = Standing::unreadable, .step = seen.step, .reason = recorded.problem, .config_unknown = true};
  else if (seen.state == RunState::finished)
    out.standing = Standing::finished;
  else if (ended && end->exit_code == kNumerical)
    out.standing = Standing::numbers;
  // A new start sets checkpoints aside, then files in any order, then it tells that it begins (record/run_folder.h): where it was killed
  // before that, events are those of a run whose records are gone. One whose numbers went wrong at its first step has no metrics.
  const bool has_steps = seen.step > 0 || (out.standing == Standing::numbers && end->step <= 1);
  const bool had_records = out.is_result() || (out.standing == Standing::cut_off && recorded_save(folder) > 0);
  if (had_records && (recorded.missing || !has_steps) && !has_checkpoints(run.config))
    out.standing = Standing::cut_off, out.records_gone = true;
  if (out.is_result() && recorded.missing)
    out = {.standing = Standing::unreadable,
           .step = seen.step,
           .reason = fmt::format("{} has no config.yaml; --fresh sets the run aside", folder.string()),
           .config_unknown = true};
  return out;
}

}  // namespace

std::string_view name_of(Standing standing) {
  constexpr std::array<std::string_view, 7> kNames = {"waiting",           "cut off",    "running", "finished",
                                                      "numerical failure", "unreadable", "taken"};
  return kNames[static_cast<size_t>(standing)];
}

std::string RunStanding::contradiction() const {
  if (standing == Standing::taken) return reason;
  std::vector<std::string> keys;
  for (const KeyChange& c : changes) keys.push_back(c.str());
  return fmt::format("its folder has a run ({}) of another config: {}", name_of(standing), fmt::join(keys, ", "));
}

std::vector<KeyChange> contradictions(const Config& recorded, const Config& planned) {
  std::vector<KeyChange> changes = config_changes(recorded, planned);
  std::erase_if(changes, [&](const KeyChange& c) {
    if (c.key == "model.vocab" && planned.model.vocab == 0) return true;
    if (c.key == "parallel.dp" && planned.parallel.dp == 0) return true;
    if (c.key == "train.micro_batch" && planned.train.micro_batch == 0) return true;
    if (c.key == "train.steps" && planned.train.steps == 0) return true;
    return is_free_key(c.key);
  });
  return changes;
}

RunStanding standing_of(const PlannedRun& run) try { return read_standing(run); } catch (const FaultError& e) {
  return {.standing = Standing::unreadable, .reason = e.what()};
}

}  // namespace hlat
