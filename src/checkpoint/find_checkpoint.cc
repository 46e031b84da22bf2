#include "checkpoint/find_checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_folder.h"
#include "config/load.h"
#include "config/nearest.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostNames = 10000;  // of a folder that are looked at

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

template <class Wanted>
std::vector<std::string> names_in(const fs::path& folder, const Wanted& wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && names.size() < kMostNames; it.increment(error))
    if (wanted(it->path())) names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_hugging_face(const fs::path& folder) {
  return is_file(folder / "config.json") && !names_in(folder, [](const fs::path& p) { return p.extension() == ".safetensors"; }).empty();
}

// Where the config of a run puts checkpoints that are not in the run folder; empty: in it, or it cannot be told.
fs::path configured_folder(const fs::path& run) {
  const fs::path config = run / "config.yaml";
  if (!is_file(config)) return {};
  try {
    return load_config(config.string()).config.checkpoint.dir;
  } catch (const Error&) {  // an old config that is no longer understood
    return {};
  }
}

// "; the nearest is step 200, the latest 900".
std::string other_steps(const std::vector<int64_t>& steps, int64_t step) {
  const auto distance = [&](int64_t s) { return s < step ? step - s : s - step; };
  const int64_t near = *std::min_element(steps.begin(), steps.end(), [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
  return near == steps.back() ? fmt::format("; the nearest is the latest, step {}", near)
                              : fmt::format("; the nearest is step {}, the latest {}", near, steps.back());
}

// What a path that does not exist may have meant.
std::string path_hint(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!is_folder(parent)) {
    fs::path existing = parent;
    while (existing.has_parent_path() && existing != existing.parent_path() && !is_folder(existing.parent_path()))
      existing = existing.parent_path();
    return fmt::format("; there is no folder {}", existing.string());
  }
  const std::string name = path.filename().string();
  if (const std::vector<int64_t> steps = checkpoint_steps(parent); !steps.empty()) {
    if (const auto step = step_of(name)) return other_steps(steps, *step);
    return fmt::format("; the latest checkpoint there is {}", checkpoint_path(parent, steps.back()).string());
  }
  const std::vector<std::string> names = names_in(parent, is_folder);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view best = nearest(name, views);
  if (best.empty()) return "";
  return fmt::format("; did you mean {}?", (path.has_parent_path() ? parent / best : fs::path(best)).string());
}

// UsageError for what is no folder.
void check_folder(const std::string& given) {
  const fs::path path(given);
  if (given.empty()) throw UsageError("the path of a checkpoint is empty");
  if (is_file(path))
    fail<UsageError>("{} is a file; a checkpoint is a folder{}", given,
                     is_file(path.parent_path() / kIndexName) ? fmt::format(": {}", path.parent_path().string()) : "");
  if (!is_folder(path)) fail<UsageError>("{}: there is no such folder{}", given, path_hint(path));
}

[[noreturn]] void fail_without(const std::string& given) {
  const fs::path path(given);
  std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  if (is_file(path / kIndexName)) fail<UsageError>("{} is a checkpoint itself, not a folder with checkpoints", given);
  if (is_hugging_face(path))
    fail<UsageError>("{} is a folder of Hugging Face: make a checkpoint of it first, with hlat ckpt import {} DST", given, given);
  if (step_of(name)) fail<UsageError>("{} has no {}: it is no checkpoint, but was left over by a process that died", given, kIndexName);
  if (leftover_step_of(name)) fail<UsageError>("{} is what a save that did not end has left over, and no checkpoint", given);
  fail<UsageError>("{}: no checkpoint is here: there is no {}, and no step_N in it, in {} or in {}", given, kIndexName, kCheckpointsName,
                   kWeightsName);
}

}  // namespace

std::vector<fs::path> checkpoint_folders(const std::string& given) {
  check_folder(given);
  const fs::path path(given);
  std::vector<fs::path> found;
  const auto is_known = [&](const fs::path& folder) {
    std::error_code error;
    return std::any_of(found.begin(), found.end(), [&](const fs::path& other) { return fs::equivalent(folder, other, error); });
  };
  for (const fs::path& folder : {path, path / kCheckpointsName, configured_folder(path), path / kWeightsName})
    if (!folder.empty() && (!checkpoint_steps(folder).empty() || !leftovers(folder).empty()) && !is_known(folder)) found.push_back(folder);
  if (found.empty()) fail_without(given);
  return found;
}

fs::path find_checkpoint(const std::string& given, std::optional<int64_t> step) {
  check_folder(given);
  if (is_file(fs::path(given) / kIndexName)) {
    if (step) fail<UsageError>("{} is a checkpoint itself; a step is chosen in the folder of a run", given);
    const fs::path folder = given;
    return folder.has_filename() ? folder : folder.parent_path();  // a shell completes with a slash
  }
  const std::vector<fs::path> folders = checkpoint_folders(given);
  for (const fs::path& folder : folders) {
    const std::vector<int64_t> steps = checkpoint_steps(folder);
    if (steps.empty()) continue;
    if (!step) return checkpoint_path(folder, steps.back());
    if (std::binary_search(steps.begin(), steps.end(), *step)) return checkpoint_path(folder, *step);
  }
  for (const fs::path& folder : folders)
    if (const std::vector<int64_t> steps = checkpoint_steps(folder); step && !steps.empty())
      fail<UsageError>("{} has no checkpoint of step {}{}", folder.string(), *step, other_steps(steps, *step));
  fail<UsageError>("{} has no checkpoint yet, only what saves that did not end have left over", folders.front().string());
}

fs::path run_folder_of(const fs::path& checkpoints) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(checkpoints, error);
  const auto is_run = [](const fs::path& path) { return is_file(path / "config.yaml") || is_file(path / "run.lock"); };
  for (const fs::path& path : {folder, folder.parent_path()})
    if (is_run(path)) return path;
  const std::vector<int64_t> steps = checkpoint_steps(checkpoints);
  if (steps.empty()) return {};
  try {
    const auto config = nlohmann::json::parse(read_index(checkpoint_path(checkpoints, steps.back())).config, nullptr, false);
    const fs::path run = config.at("run").at("dir").get<std::string>();
    return is_run(run) ? run : fs::path();
  } catch (const Error&) {  // a damaged index
  } catch (const nlohmann::json::exception&) {
  }
  return {};
}

}  // namespace hlat
