#include "study/standing.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "config/load.h"
#include "record/run_overview.h"

namespace hlat {
namespace {

constexpr int kNumbersWentWrong = 5;  // cli/exit_code.h

// Keys, or beginnings of keys, that may differ.
constexpr std::array<std::string_view, 14> kFree = {"run.dir",
                                                    "run.tensorboard",
                                                    "run.sample_lines",
                                                    "run.lease_s",
                                                    "data.workers",
                                                    "data.prefetch",
                                                    "data.cache_dir",
                                                    "checkpoint.",
                                                    "launch.",
                                                    "device.threads",
                                                    "device.backend",
                                                    "parallel.timeout_s",
                                                    "parallel.start_timeout_s",
                                                    "parallel.comm"};

std::optional<Config> recorded_config(const std::filesystem::path& folder) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(folder / "config.yaml", none)) return {};
  try {
    return load_config((folder / "config.yaml").string()).config;
  } catch (const UsageError&) {
    return {};  // of another version: nothing is known about it
  }
}

}  // namespace

std::string_view name_of(Standing standing) {
  constexpr std::array<std::string_view, 5> kNames = {"waiting", "cut off", "running", "finished", "numbers went wrong"};
  return kNames[static_cast<size_t>(standing)];
}

std::vector<KeyChange> contradictions(const Config& recorded, const Config& planned) {
  std::vector<KeyChange> changes = config_changes(recorded, planned);
  std::erase_if(changes, [&](const KeyChange& c) {
    if (c.key == "model.vocab" && planned.model.vocab == 0) return true;
    if (c.key == "parallel.dp" && planned.parallel.dp == 0) return true;
    if (c.key == "train.micro_batch" && planned.train.micro_batch == 0) return true;
    if (c.key == "train.steps" && planned.train.steps == 0) return true;
    return std::any_of(kFree.begin(), kFree.end(),
                       [&](std::string_view free) { return free.ends_with('.') ? c.key.starts_with(free) : c.key == free; });
  });
  return changes;
}

RunStanding standing_of(const PlannedRun& run) {
  const std::filesystem::path folder = run.config.run.dir;
  if (!is_run_folder(folder)) return {};
  const RunOverview seen = read_run(folder);
  RunStanding out{.standing = Standing::cut_off, .step = seen.step};
  if (const auto recorded = recorded_config(folder)) out.changes = contradictions(*recorded, run.config);
  const auto end = std::find_if(seen.events.rbegin(), seen.events.rend(),
                                [](const RunEvent& e) { return e.kind == "end" || e.kind == "start" || e.kind == "fault"; });
  if (end != seen.events.rend()) out.reason = end->reason;
  const bool ended = end != seen.events.rend() && end->kind == "end";
  if (seen.state == RunState::running)
    out.standing = Standing::running;
  else if (seen.state == RunState::finished)
    out.standing = Standing::finished;
  else if (ended && end->exit_code == kNumbersWentWrong)
    out.standing = Standing::numbers;
  return out;
}

}  // namespace hlat
