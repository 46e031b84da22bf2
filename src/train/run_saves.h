// When a run saves, and what becomes of it. Rank 0 says what is due: every n steps, every n minutes, copies of the weights every n tokens,
// and once more after a save that failed, with growing pauses. The ranks agree at a step boundary and begin together; a save that is still
// under way delays the next one. After a commit rank 0 removes what retention does not keep, overlapped with the training. A failed save is
// told and never ends a run: only the last one, which nothing comes after, is tried a few times more and then reported by the caller.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/saver.h"
#include "config/config.h"
#include "record/metrics.h"
#include "train/background_removal.h"
#include "train/state_records.h"

namespace hlat {

// What there is to tell about saves.
struct SaveNews {
  enum class Kind : uint8_t { saved, failed, note };  // note: neither, but a person should know
  std::string text;
  Kind kind = Kind::note;
  int64_t saved_step = 0;  // the latest checkpoint; 0: none
};

// What of a run a save needs to know; the same on all ranks, but for kernels.
struct SavesSetup {
  Saver& saver;
  std::filesystem::path checkpoints, weights;          // folders of checkpoints
  std::string run;                                     // id of the run
  std::string version;                                 // of hlat
  std::string config;                                  // JSON
  std::vector<Record> records;                         // that all its checkpoints have
  bool owns_start = true;                              // the step it begins after is saved in `checkpoints`; false: by another run
  std::function<std::string()> kernels = {};           // this rank's kernel choices (Backend::kernel_choices)
  std::function<std::string()> fp8 = {};               // this rank's scales (own_fp8)
  std::function<void(const SaveNews&)> tell = {};      // on rank 0: an event for log, journal and terminal
  std::function<void(const SaveOutcome&)> ended = {};  // on every rank: a save has ended
};

class RunSaves {
 public:
  enum class Due : uint8_t { nothing, weights, training };

  // start: the step this process began after, which is saved, or 0. position: of the data that this rank reads; may be empty.
  RunSaves(const Config& config, const SavesSetup& setup, int64_t start, bool leads, std::function<OwnPosition()> position);
  ~RunSaves();
  RunSaves(const RunSaves&) = delete;
  RunSaves& operator=(const RunSaves&) = delete;

  // More records of training checkpoints, asked for when a save of this step begins; the same on all ranks.
  void add_records(std::function<std::vector<Record>(int64_t step)> records) { more_records_ = std::move(records); }

  void before_update(int bucket) { setup_.saver.before_update(bucket); }
  bool busy() const { return setup_.saver.busy(); }
  // What became of saves that ended; into the record of a step. Whoever was not busy before this has no outcome left after it.
  void collect(StepMetrics* metrics = nullptr);
  Due due(int64_t step);  // on rank 0; elsewhere nothing is
  void begin(Due what, int64_t step, double loss);

  // The run ends after this step, maybe because a signal asked for it: waits for what is under way, and saves this step where that is
  // wanted and not done. `agree` takes the largest of all ranks' numbers. Gives up a save that makes no progress for patience_s seconds.
  // Returns why the step is not saved; empty: it is, or need not be.
  std::string finish(int64_t step, double loss, bool signalled, double patience_s, const std::function<int(int)>& agree);
  int64_t saved_step() const { return saved_; }  // the latest checkpoint of this run; 0: none

 private:
  // Saves of one content.
  struct Series {
    int64_t begun = 0;    // step of the latest
    double begun_at = 0;  // seconds
    int failures = 0;     // since the latest commit
    double retry_at = 0;  // after a failure
    std::string problem;  // of the latest; empty: none
  };
  struct Shortage {
    CheckpointContent content = CheckpointContent::training;  // of the save that found no room
    uint64_t room = 0;                                        // that it asked for
  };

  Series& series(CheckpointContent content) { return content == CheckpointContent::training ? training_ : weights_; }
  int64_t newest_copy(int64_t start) const;
  bool weights_due(int64_t step) const;
  void take(const SaveOutcome& outcome, StepMetrics* metrics);
  void remove_old();
  void await_removal(double seconds);
  bool await_idle(double patience_s, const std::function<int(int)>& agree);
  void tell(const std::string& text, SaveNews::Kind kind = SaveNews::Kind::note) const;

  CheckpointConfig config_;
  SavesSetup setup_;
  std::function<OwnPosition()> position_;
  std::function<std::vector<Record>(int64_t)> more_records_;
  int64_t tokens_per_step_;
  bool leads_;
  int64_t saved_;  // step of the latest checkpoint of this run
  Series training_, weights_;
  CheckpointContent latest_ = CheckpointContent::training;  // of the save that was begun last
  int64_t told_late_ = 0;                                   // the save that was said to be late

  // On rank 0.
  BackgroundRemoval removal_;
  bool prune_wanted_ = false;
  std::optional<Shortage> shortage_;             // room is still to be made
  std::optional<CheckpointContent> makes_room_;  // the removal at work does so, for this
};

}  // namespace hlat
