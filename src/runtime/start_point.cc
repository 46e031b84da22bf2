#include "runtime/start_point.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/json_text.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/health_record.h"
#include "config/continuation.h"
#include "config/load.h"
#include "config/saved.h"
#include "record/run_journal.h"
#include "runtime/from_rank_0.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kOrigin = "origin";

std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::optional<int64_t> as_step(const std::string& text) {
  int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(step) : std::nullopt;
}

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

bool is_within(const fs::path& checkpoint, const std::vector<fs::path>& dirs) {
  return std::any_of(dirs.begin(), dirs.end(), [&](const fs::path& dir) { return same_folder(checkpoint.parent_path(), dir); });
}

// What rank 0 finds.
class Search {
 public:
  Search(const Config& config, bool fresh, const GoBack& before)
      : asked_(!config.checkpoint.resume_from.empty() ? config.checkpoint.resume_from : config.checkpoint.init_from),
        resumes_(!config.checkpoint.resume_from.empty()),
        dir_(checkpoint_dir(config)),
        before_(before) {
    if (!fresh) steps_ = checkpoint_steps(dir_);
    if (!fresh && steps_.empty() && !has_replaced()) check_none_lost(config);
    if (fresh && !asked_.empty() && !as_step(asked_) && is_within(find_checkpoint(asked_), {dir_, weights_dir(config)}))
      fail<UsageError>("checkpoint.{} = {} is in the run folder that --fresh sets aside: give another run.dir, or copy it first",
                       resumes_ ? "resume_from" : "init_from", asked_);
  }

  StartPoint find() {
    StartPoint start = choose();
    start.found = steps_;
    return start;
  }

 private:
  StartPoint choose() {
    if (steps_.empty()) return asked_.empty() ? anew() : from_elsewhere();
    StartPoint own = newest();
    if (asked_.empty() || asked_of(own) == asked_) return before_.step > 0 ? earlier_of(std::move(own)) : own;
    if (!resumes_)
      fail<UsageError>(
          "{} has checkpoints of a run that did not start from checkpoint.init_from = {}: leave the key out to go on with them, or set "
          "them "
          "aside with --fresh",
          dir_.string(), asked_);
    const fs::path folder = asked_folder();
    if (!same_folder(folder.parent_path(), dir_))
      fail<UsageError>(
          "checkpoint.resume_from = {} is of another run, and {} has checkpoints already: give another run.dir, or set them aside with "
          "--fresh",
          asked_, dir_.string());
    return resumed(StartKind::rewind, folder);
  }

  // check_unchanged() puts it back.
  bool has_replaced() const {
    const std::vector<Leftover> left = leftovers(dir_);
    return std::any_of(left.begin(), left.end(), [](const Leftover& l) { return l.folder.extension() == ".replaced"; });
  }

  // A run that has checkpoints elsewhere, or had, must not begin anew because this folder has none.
  void check_none_lost(const Config& config) const {
    const fs::path run = config.run.dir;
    for (const fs::path& dir : {former_dir(config), run / "checkpoints"})
      if (const std::vector<int64_t> there = checkpoint_steps(dir); !there.empty())
        fail<UsageError>(
            "{} has no checkpoints, and the run of {} has some in {}, up to step {}: give checkpoint.dir={} or move them, or set the run "
            "aside with --fresh",
            dir_.string(), run.string(), dir.string(), there.back(), dir.string());
    if (const int64_t saved = recorded_save(run); saved > 0)
      fail<UsageError>(
          "{} has no checkpoints, and events.jsonl of {} says that step {} was saved: check that its disk is mounted, or start anew with "
          "--fresh",
          dir_.string(), run.string(), saved);
  }

  // Where the run folder's own config says that its checkpoints are.
  static fs::path former_dir(const Config& config) try {
    const fs::path file = fs::path(config.run.dir) / "config.yaml";
    if (!fs::exists(file)) return {};
    return checkpoint_dir(load_config(file.string()).config);
  } catch (const std::exception&) {
    return {};  // of a version that had other keys, or cannot be read
  }

  static StartPoint anew() {
    StartPoint start;
    start.run = new_run_id();
    return start;
  }

  // The newest whose index is sound, and those before it.
  StartPoint newest() {
    StartPoint start;
    start.kind = StartKind::continued;
    std::vector<DamagedFolder> all;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      const fs::path folder = checkpoint_path(dir_, *step);
      if (start.candidates.empty() && !read(folder, start.index, all)) continue;
      start.candidates.push_back(folder);
    }
    if (start.candidates.empty()) fail<DamagedCheckpoint>("{} has no checkpoint that is whole: {}", dir_.string(), all.front().reason);
    start.damaged = std::move(all);
    start.run = start.index.run;
    if (const Record* origin = start.index.find_record(kOrigin)) start.records.push_back(*origin);
    return start;
  }

  // The newest of an earlier step, where asked for one that was found right when it was saved, and those before it.
  StartPoint earlier_of(StartPoint own) const {
    StartPoint start;
    std::string found;
    for (const fs::path& folder : own.candidates) {
      CheckpointIndex index;
      std::vector<DamagedFolder> damaged;
      if (!read(folder, index, damaged)) continue;  // it stays: it is told when it is newer than what is taken, or when it is tried
      found += fmt::format("{}step {} ({}verified)", found.empty() ? "" : ", ", index.step, is_verified(index) ? "" : "not ");
      if (index.step >= before_.step || (before_.verified && !is_verified(index))) continue;
      if (start.candidates.empty()) start.index = index;
      start.candidates.push_back(folder);
    }
    if (start.candidates.empty())
      fail<UsageError>(
          "--before {}: {} has no checkpoint of an earlier step{}; it has {}: choose one with checkpoint.resume_from=STEP, or start anew "
          "with --fresh",
          before_.step, dir_.string(), before_.verified ? " whose replicas were found equal when it was saved (parallel.health_every)" : "",
          found);
    start.kind = StartKind::rewind;
    start.damaged = std::move(own.damaged);
    start.run = start.index.run;
    if (const Record* origin = start.index.find_record(kOrigin)) start.records.push_back(*origin);
    return start;
  }

  static bool read(const fs::path& folder, CheckpointIndex& index, std::vector<DamagedFolder>& damaged) try {
    index = read_index(folder);
    return true;
  } catch (const DamagedCheckpoint& e) {
    damaged.push_back({folder, e.what()});
    return false;
  }

  // What the keys said when the run began, or went back.
  static std::string asked_of(const StartPoint& start) {
    if (start.records.empty()) return {};
    const Json origin = Json::parse(start.records.front().json, nullptr, false);
    return origin.is_object() && origin.value("asked", Json()).is_string() ? origin["asked"].get<std::string>() : std::string();
  }

  fs::path asked_folder() const {
    const auto step = as_step(asked_);
    if (!step) return find_checkpoint(asked_);
    if (std::find(steps_.begin(), steps_.end(), *step) == steps_.end())
      fail<UsageError>("checkpoint.resume_from = {}: {} has {}", asked_, dir_.string(),
                       steps_.empty() ? "no checkpoints" : fmt::format("checkpoints of steps {}", fmt::join(steps_, ", ")));
    return checkpoint_path(dir_, *step);
  }

  StartPoint resumed(StartKind kind, const fs::path& folder) const {
    StartPoint start;
    start.kind = kind;
    start.candidates = {folder};
    start.index = read_index(folder);
    if (kind != StartKind::weights && start.index.content == CheckpointContent::weights)
      fail<UsageError>("checkpoint.resume_from = {} has weights alone: checkpoint.init_from starts a new run with them", asked_);
    start.run = kind == StartKind::rewind ? start.index.run : new_run_id();
    const Json origin{{"kind", kind == StartKind::weights ? "weights" : "state"},
                      {"asked", asked_},
                      {"run", start.index.run},
                      {"step", start.index.step}};
    start.records = {{std::string(kOrigin), 1, json_text(origin)}};
    return start;
  }

  StartPoint from_elsewhere() const { return resumed(resumes_ ? StartKind::fork : StartKind::weights, asked_folder()); }

  std::string asked_;
  bool resumes_;
  fs::path dir_;
  GoBack before_;
  std::vector<int64_t> steps_;
};

SavedConfig saved_config(const StartPoint& start) { return config_from_json(nlohmann::ordered_json::parse(start.index.config)); }

// A StartPoint as text for the other ranks.
std::string pack(const StartPoint& s) {
  Json json{{"kind", static_cast<int>(s.kind)}, {"run", s.run}, {"index", s.candidates.empty() ? "" : s.index.save()}};
  json["candidates"] = Json::array();
  for (const fs::path& p : s.candidates) json["candidates"].push_back(p.string());
  json["records"] = Json::array();
  for (const Record& r : s.records) json["records"].push_back({r.name, r.version, r.json});
  return json_text(json);
}

StartPoint unpack(const std::string& text) {
  const Json json = Json::parse(text);
  StartPoint s;
  s.kind = static_cast<StartKind>(json["kind"].get<int>());
  s.run = json["run"].get<std::string>();
  for (const Json& p : json["candidates"]) s.candidates.emplace_back(p.get<std::string>());
  for (const Json& r : json["records"]) s.records.push_back({r[0].get<std::string>(), r[1].get<int>(), r[2].get<std::string>()});
  if (!s.candidates.empty()) s.index = CheckpointIndex::parse(json["index"].get<std::string>());
  return s;
}

}  // namespace

fs::path checkpoint_dir(const Config& config) {
  return config.checkpoint.dir.empty() ? fs::path(config.run.dir) / "checkpoints" : fs::path(config.checkpoint.dir);
}

fs::path weights_dir(const Config& config) {
  return config.checkpoint.dir.empty() ? fs::path(config.run.dir) / "weights" : fs::path(config.checkpoint.dir) / "weights";
}

StartPoint find_start(const Config& config, bool fresh, Comm& world, const GoBack& before) {
  std::optional<StartPoint> own;
  const std::string text = from_rank_0(world, [&] {
    own = Search(config, fresh, before).find();
    return pack(*own);
  });
  return own ? std::move(*own) : unpack(text);
}

void check_unchanged(const Config& config, const StartPoint& start) {
  const fs::path dir = checkpoint_dir(config);
  remove_leftovers(dir);
  if (checkpoint_steps(dir) != start.found)
    fail<FaultError>("{} has other checkpoints now than when this run looked for them: another process wrote there; start it again",
                     dir.string());
}

std::optional<int64_t> saved_micro_batch(const Config& config, const StartPoint& start) {
  if (!start.resumes()) return {};
  const Config saved = saved_config(start).config;
  return saved.parallel.dp == config.parallel.dp ? std::optional(saved.train.micro_batch) : std::nullopt;
}

std::vector<std::string> check_start(const Config& config, const StartPoint& start) {
  if (!start.resumes()) return {};
  const SavedConfig saved = saved_config(start);
  std::vector<std::string> lines = check_continuation(saved.config, config, start.kind != StartKind::continued);
  for (const std::string& key : saved.unknown) lines.push_back(fmt::format("{} of the saved config is not known here", key));
  return lines;
}

}  // namespace hlat
