// Where a run starts: anew, with the weights of a checkpoint, or where a checkpoint stands. Rank 0 looks at the folders and tells the
// others. A run whose folder has checkpoints is continued, whatever the keys say that made it start: resume_from and init_from are recorded
// in its checkpoints, so that the same command goes back, forks or starts from weights once, and from then on continues.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "comm/comm.h"
#include "config/config.h"

namespace hlat {

std::filesystem::path checkpoint_dir(const Config& config);
std::filesystem::path weights_dir(const Config& config);  // of copies of the weights

enum class StartKind : uint8_t {
  anew,
  weights,   // checkpoint.init_from: a new run with these weights
  fork,      // checkpoint.resume_from, of another run: a new run with all of its state
  rewind,    // checkpoint.resume_from, of this run, or --before: what came later is set aside
  continued  // where its latest checkpoint stands
};

struct DamagedFolder {
  std::filesystem::path folder;
  std::string reason;
};

struct StartPoint {
  StartKind kind = StartKind::anew;
  std::string run;                                // id of the run
  std::vector<std::filesystem::path> candidates;  // the best first; later ones only where those before turn out to be damaged
  CheckpointIndex index;                          // of the first; nothing in it for a run that starts anew
  std::vector<DamagedFolder> damaged;             // newer ones whose index is not sound
  std::vector<int64_t> found;                     // rank 0: steps that the search saw in the run's own folder
  std::vector<Record> records;                    // that its checkpoints have: where it came from

  bool resumes() const { return kind == StartKind::fork || kind == StartKind::rewind || kind == StartKind::continued; }
  int64_t step() const { return resumes() ? index.step : 0; }
};

// The run goes back to the newest checkpoint of a step below this one.
struct GoBack {
  int64_t step = 0;      // 0: it does not
  bool verified = true;  // only one that was verified will do (checkpoint/health_record.h)
};

// Collective over `world`. fresh: what the run folder has is not looked at. before: a run that has checkpoints and none such is a
// UsageError, and one without checkpoints starts anew. UsageError on all ranks, also where the run of this folder has its checkpoints
// elsewhere, or has recorded some that are gone.
StartPoint find_start(const Config& config, bool fresh, Comm& world, const GoBack& before = {});

// What the saved run allows to be changed (config/continuation.h), before memory is taken; lines for the log. UsageError.
std::vector<std::string> check_start(const Config& config, const StartPoint& start);

// On rank 0, when the run folder is its own: FaultError when the checkpoints are not those that the search saw. Another process, which held
// the folder until now, has then saved more, or died with a checkpoint put away to be replaced, which is put back here.
void check_unchanged(const Config& config, const StartPoint& start);

// The micro-batch of the saved run, with which `config` repeats its bits; none: nothing is resumed, or the replicas are others.
std::optional<int64_t> saved_micro_batch(const Config& config, const StartPoint& start);

}  // namespace hlat
