// When a run saves, and what becomes of it. Rank 0 says what is due: every n steps, every n minutes, copies of the weights every n tokens,
// and once more after a save that failed, with growing pauses. The ranks agree at a step boundary and begin together; a save that is still
// under way delays the next one. After a commit rank 0 removes what retention does not keep. A failed save is told and never ends a run:
// only the last one, which nothing comes after, is tried a few times more and then reported by the caller.
#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "checkpoint/saver.h"
#include "config/config.h"
#include "record/metrics.h"
#include "train/state_records.h"

namespace hlat {

// What there is to tell about saves.
struct SaveNews {
  std::string text;
  bool problem = false;
  int64_t saved_step = 0;  // the latest checkpoint; 0: none
};

// What of a run a save needs to know; the same on all ranks, but for kernels.
struct SavesSetup {
  Saver& saver;
  std::filesystem::path checkpoints, weights;      // folders of checkpoints
  std::string run;                                 // id of the run
  std::string version;                             // of hlat
  std::string config;                              // JSON
  std::vector<Record> records;                     // that all its checkpoints have
  std::function<std::string()> kernels = {};       // this rank's kernel choices (Backend::kernel_choices)
  std::function<void(const SaveNews&)> tell = {};  // on rank 0: an event for log, journal and terminal
};

class RunSaves {
 public:
  enum class Due : uint8_t { nothing, weights, training };

  // start: the step this process began after, which is saved, or 0. position: of the data that this rank reads; may be empty.
  RunSaves(const Config& config, const SavesSetup& setup, int64_t start, bool leads, std::function<OwnPosition()> position);
  ~RunSaves();
  RunSaves(const RunSaves&) = delete;
  RunSaves& operator=(const RunSaves&) = delete;

  void before_update(int bucket) { setup_.saver.before_update(bucket); }
  void collect(StepMetrics* metrics = nullptr);  // what became of a save that ended; into the record of a step
  bool busy() const { return setup_.saver.busy(); }
  Due due(int64_t step);  // on rank 0; elsewhere nothing is
  void begin(Due what, int64_t step, double loss);

  // The run ends after this step, maybe because a signal asked for it: waits for what is under way, and saves this step where that is
  // wanted and not done. `agree` takes the largest of all ranks' numbers. Gives up after limit_s seconds. Returns why the step is not
  // saved; empty: it is, or need not be.
  std::string finish(int64_t step, double loss, bool signalled, double limit_s, const std::function<int(int)>& agree);
  int64_t saved_step() const { return saved_; }  // the latest checkpoint of this run; 0: none

 private:
  void wait_pruned();
  void prune();
  void make_room(uint64_t bytes);
  void tell(const std::string& text, bool problem) const;

  CheckpointConfig config_;
  SavesSetup setup_;
  std::function<OwnPosition()> position_;
  int64_t tokens_per_step_;
  bool leads_;
  int64_t saved_, begun_, weights_;  // steps: committed, begun, of the latest copy of the weights
  double begun_at_ = 0;              // seconds
  int failures_ = 0;                 // since the last commit
  double retry_at_ = 0;              // after a failure
  int64_t told_late_ = 0;            // the save that was said to be late
  CheckpointContent under_way_ = CheckpointContent::training;
  std::string problem_;               // of the latest save; empty: none
  std::future<std::string> pruning_;  // what went wrong; empty: nothing
};

}  // namespace hlat
