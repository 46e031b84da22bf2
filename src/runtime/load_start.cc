#include "runtime/load_start.h"

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "base/machine.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/health_record.h"
#include "checkpoint/load_state.h"
#include "runtime/from_rank_0.h"
#include "train/fp8_record.h"
#include "train/state_records.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;

void tell_loaded(const StartPoint& start, const LoadResult& result, double seconds, const SayStart& say) {
  const std::string from = fmt::format("step {} of run {} ({})", start.index.step, start.index.run, start.candidates.front().string());
  switch (start.kind) {
    case StartKind::anew: return;
    case StartKind::weights: say("a new run with the weights of " + from, false); break;
    case StartKind::fork: say("a new run that goes on from " + from, false); break;
    case StartKind::rewind: say("the run goes back to " + from, false); break;
    case StartKind::continued: say(fmt::format("the run goes on after step {}", start.index.step), false); break;
  }
  for (const std::string& line : result.conversions) say("loaded " + line, false);
  say(fmt::format("rank 0 read {} in {}", format_bytes(result.bytes_read), format_duration(seconds)), false);
}

// One candidate into the model; its records are read before memory is changed.
TrainState load(const StartPoint& start, PlacedModel& model, int threads, const SayStart& say) {
  TrainState state;
  state.step = start.step();
  std::optional<Fp8Scales> scales;
  if (start.resumes()) {
    state.data = saved_position(start.index);
    state.loss = saved_loss(start.index);
    state.alarms = saved_alarms(start.index);
    scales = saved_fp8(start.index, model.executor().config());
    if (const std::optional<HealthRecord> health = health_of(start.index)) state.health_passed = health->passed;
  }
  CheckpointReader reader(start.candidates.front(), start.index);
  const double begin = now_s();
  const LoadResult result = load_state(reader, model.executor().params(), model.mesh(), model.device(),
                                       start.resumes() ? LoadWhat::training : LoadWhat::weights, threads);
  restore_fp8(scales, model.executor());
  if (start.resumes() && !scales && model.executor().params().precision().fp8)
    say("the checkpoint has no scales of FP8: they are measured on the first batch", false);
  tell_loaded(start, result, now_s() - begin, say);
  return state;
}

// What comes before the checkpoint that the run came back to has another origin: the run had been allowed what a rewind is.
bool is_of_same_origin(const StartPoint& start) {
  return std::all_of(start.records.begin(), start.records.end(), [&](const Record& record) {
    const Record* found = start.index.find_record(record.name);
    return found != nullptr && *found == record;
  });
}

// Takes the next candidate whose index is sound. DamagedCheckpoint when there is none. Collective over `world`.
void take_previous(StartPoint& start, std::string reason, Comm& world, const SayStart& say) {
  while (true) {
    start.damaged.push_back({start.candidates.front(), reason});
    start.candidates.erase(start.candidates.begin());
    if (start.candidates.empty()) throw DamagedCheckpoint(reason);
    say(fmt::format("{}\nthe checkpoint before it is taken: {}", reason, start.candidates.front().string()), true);
    try {
      start.index = CheckpointIndex::parse(from_rank_0(world, [&] { return read_index(start.candidates.front()).save(); }));
      break;
    } catch (const DamagedCheckpoint& e) {
      reason = e.what();
    }
  }
  if (start.kind == StartKind::continued && !is_of_same_origin(start)) start.kind = StartKind::rewind;
}

// STEM_K with the first number from `k` that is not there.
fs::path unused_name(const std::string& stem, int k) {
  while (fs::exists(fmt::format("{}_{}", stem, k))) ++k;
  return fmt::format("{}_{}", stem, k);
}

// An earlier one of this step stays: what was wrong with it may have been the file system.
fs::path damaged_name(const fs::path& folder) {
  const std::string name = folder.string() + ".damaged";
  return fs::exists(name) ? unused_name(name, 2) : fs::path(name);
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::rename(from, to, error);
  if (error) fail_storage(error.value(), fmt::format("cannot move {} to {}", from.string(), to.string()));
}

}  // namespace

TrainState load_start(StartPoint& start, const Config& config, PlacedModel& model, Comm& world, int threads, const SayStart& say) {
  if (start.kind == StartKind::anew) {
    model.executor().init_weights();
    return {};
  }
  for (const DamagedFolder& d : start.damaged) say(d.reason, true);
  while (true) try {
      TrainState state = load(start, model, threads, say);
      check_start(config, start);
      return state;
    } catch (const DamagedCheckpoint& e) {
      take_previous(start, e.what(), world, say);
    }
}

std::vector<std::string> set_later_aside(const StartPoint& start, const Config& config) {
  std::vector<std::string> lines;
  remove_leftovers(checkpoint_dir(config));
  remove_leftovers(weights_dir(config));
  for (const DamagedFolder& d : start.damaged) {
    const fs::path to = damaged_name(d.folder);
    move(d.folder, to);
    lines.push_back(fmt::format("{} is damaged and is now {}", d.folder.string(), to.filename().string()));
  }
  if (start.kind != StartKind::rewind) return lines;
  for (const fs::path& dir : {checkpoint_dir(config), weights_dir(config)}) {
    const std::vector<int64_t> steps = checkpoint_steps(dir);
    if (steps.empty() || steps.back() <= start.index.step) continue;
    const fs::path aside = unused_name(dir / "previous", 1);
    for (const int64_t step : steps)
      if (step > start.index.step) move(checkpoint_path(dir, step), checkpoint_path(aside, step));
    lines.push_back(fmt::format("checkpoints after step {} were moved to {}", start.index.step, aside.string()));
  }
  return lines;
}

}  // namespace hlat
