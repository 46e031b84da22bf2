#include "record/run_folder.h"

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "record/event_file_cut.h"
#include "record/events.h"
#include "record/metrics_tail.h"
#include "record/step_times.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

fs::path make_folder(const fs::path& dir) {
  std::error_code error;
  if (fs::exists(dir, error) && !fs::is_directory(dir, error)) fail<UsageError>("run.dir {} is a file, not a folder", dir.string());
  fs::create_directories(dir, error);
  if (error) fail_storage(error.value(), "cannot create the run folder " + dir.string());
  return dir;
}

bool is_event_file(const std::string& name) { return name.starts_with("events.out."); }

bool belongs_to_a_run(const std::string& name) {
  return name == "config.yaml" || name == "metrics.jsonl" || name == "eval.jsonl" || name == "log.txt" || name == "plan.json" ||
         name == "ledger.json" || is_event_file(name);
}

template <class Wanted>
std::vector<fs::path> files_in(const fs::path& dir, const Wanted& wanted) try {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(dir))
    if (wanted(entry.path().filename().string())) files.push_back(entry.path());
  return files;
} catch (const fs::filesystem_error& e) {
  fail_storage(e.code().value(), fmt::format("cannot read the run folder {}", dir.string()));
}

bool has_text(const fs::path& file, std::string_view text) {
  std::ifstream in(file, std::ios::binary);
  return in && std::string{std::istreambuf_iterator<char>(in), {}} == text;
}

// What a run that goes on behind `step` says about the metrics it found.
std::vector<std::string> describe(const MetricsCut& cut, int64_t step, const fs::path& previous) {
  std::vector<std::string> lines = {fmt::format("the run continues after step {}", step)};
  if (cut.first_cut)
    lines.push_back(fmt::format("metrics of steps {} to {} were moved to {}: these steps are done again", *cut.first_cut, *cut.last_cut,
                                previous.string()));
  if (!cut.kept)
    lines.push_back(fmt::format("metrics.jsonl has none of the steps up to {}: the checkpoint came without them", step));
  else if (*cut.kept < step)
    lines.push_back(
        fmt::format("metrics.jsonl has no lines of steps {} to {}: they were not on disk when the machine failed, or the "
                    "checkpoint came without them",
                    *cut.kept + 1, step));
  return lines;
}

constexpr size_t kMostRepeated = 20;   // folders of steps that were done again
constexpr size_t kMostHeld = 100'000;  // steps, some 50 MiB

// Of a run that starts anew all of them are done again.
PastSteps look_back(const fs::path& metrics, bool goes_on) {
  PastSteps past{.reached = last_recorded_step(metrics)};
  if (!past.reached) return past;
  past.progressed_at = written_at(metrics);
  if (goes_on) return past;
  for (const RecordedStep& step : read_step_times(metrics)) ++past.repeated, past.repeated_s += step.seconds;
  return past;
}

}  // namespace

RunFolder::RunFolder(const fs::path& dir, std::string_view config_yaml, bool tensorboard, double lease_s, const FolderLease::Say& say,
                     const FolderStart& start)
    : dir_(make_folder(dir)),
      lease_(dir_, lease_s, say),
      tensorboard_(tensorboard),
      goes_on_(start.goes_on),
      past_(look_back(dir_ / "metrics.jsonl", goes_on_)),
      previous_(dir_),
      found_(make_room(config_yaml, start)),
      log_(make_file_log(dir_ / "log.txt")) {
  if (!fs::exists(dir_ / "config.yaml")) OutputFile(dir_ / "config.yaml", OutputFile::Mode::create_new).write(config_yaml);
  if (!goes_on_) open_records();
  if (!lease_.taken_over().empty()) log_->warn("{}", lease_.taken_over());
  for (const std::string& line : found_) log_->info("{}", line);
}

std::vector<std::string> RunFolder::make_room(std::string_view config_yaml, const FolderStart& start) {
  if (start.check) start.check();
  // Without checkpoints a folder is that of an old run, whatever else was moved when a process is killed here.
  for (const fs::path& path : start.set_aside) previous_.take(path);
  if (!start.goes_on) {
    for (const fs::path& file : files_in(dir_, belongs_to_a_run)) previous_.take(file);
  } else if (!has_text(dir_ / "config.yaml", config_yaml)) {
    previous_.take(dir_ / "config.yaml");
  }
  if (!previous_.used()) return {};
  return {fmt::format("files of an earlier run were moved to {}", previous_.folder().string())};
}

void RunFolder::open_records() {
  metrics_.emplace(dir_ / "metrics.jsonl");
  if (tensorboard_) events_.emplace(dir_, wall_time());
}

void RunFolder::go_on(int64_t behind) {
  if (!goes_on_) return;
  const MetricsCut cut = cut_metrics(dir_ / "metrics.jsonl", behind, previous_);
  if (fs::exists(dir_ / "eval.jsonl")) cut_metrics(dir_ / "eval.jsonl", behind, previous_);
  for (const fs::path& file : files_in(dir_, is_event_file)) cut_event_file(file, behind, previous_);
  last_step_ = cut.kept;
  if (cut.first_cut) past_.repeated = *cut.last_cut - *cut.first_cut + 1, past_.repeated_s = cut.cut_s;
  for (const std::string& line : describe(cut, behind, cut.first_cut ? previous_.folder() : fs::path())) log_->info("{}", line);
  open_records();
  prune_repeated(dir_, kMostRepeated);
}

void RunFolder::write(Held& held) {
  if (!held.in_metrics) metrics_->write(held.metrics);
  held.in_metrics = true;
  last_step_ = held.metrics.step;
  if (events_) events_->write(held.metrics, held.wall_time);
}

void RunFolder::record(const StepMetrics& m) {
  lease_.check();
  held_.push_back({m, wall_time()});
  try {
    for (; !held_.empty(); held_.pop_front()) write(held_.front());
  } catch (const DiskFull& e) {
    if (held_.size() >= kMostHeld) throw;
    if (held_.size() == 1) log_->warn("{}; the records of steps from {} on are held until there is room", e.what(), m.step);
  }
}

void RunFolder::record(const TaskMetrics& m) {
  lease_.check();
  try {
    if (!tasks_) tasks_.emplace(dir_ / "eval.jsonl");
    tasks_->write(m);
    if (events_) events_->write(m, wall_time());
  } catch (const DiskFull& e) {
    log_->warn("{}; the record of the tasks evaluated after step {} is lost", e.what(), m.step);
  }
}

void RunFolder::record(const ToldAlarm& alarm) {
  lease_.check();
  try {
    if (events_) events_->write(alarm, wall_time());
  } catch (const DiskFull& e) {
    log_->warn("{}; TensorBoard's record of the alarm {} of step {} is lost", e.what(), alarm.rule, alarm.step);
  }
}

void RunFolder::finish() {
  for (; !held_.empty(); held_.pop_front()) write(held_.front());
}

}  // namespace hlat
