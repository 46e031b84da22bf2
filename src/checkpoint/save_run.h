// One save from its begin to its end, on three threads of its own: one copies state to staging memory, one does all that touches the disk,
// one talks to the other ranks and never waits for a disk. So a file system that hangs stops neither the rounds of the ranks nor training.
//
// Steps, each agreed upon by all ranks: rank 0 makes the folder and looks for room; all write; rank 0 hears what was written and commits.
// The first problem of any rank ends the save: its outcome is told at once, then all stop what they do and rank 0 removes the folder.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/rank_report.h"
#include "checkpoint/rank_state.h"
#include "checkpoint/save_agreement.h"
#include "checkpoint/saver.h"
#include "checkpoint/staging.h"

namespace hlat {

class SaveRun {
 public:
  // What it works with; all of it outlives the run.
  struct Tools {
    const RankState& state;
    Staging& staging;
    CopyStream* copies = nullptr;  // null: state lies in host memory
    Comm* commit = nullptr;
    const SaveOptions& options;
  };

  // mark: of `copies`, the point in the device's work that the state belongs to. problem: that the rank has before it begins.
  SaveRun(const Tools& tools, SaveRequest request, uint64_t mark, const std::string& problem);
  ~SaveRun();  // waits for its end
  SaveRun(const SaveRun&) = delete;
  SaveRun& operator=(const SaveRun&) = delete;

  void await_copy(int bucket);
  bool await_outcome(double seconds);
  std::optional<SaveOutcome> take_outcome();
  bool over() const;           // nothing of it is left
  uint64_t progress() const;   // bytes written by all ranks, as of their latest round
  std::string broken() const;  // after its end: why the ranks can agree on nothing more; empty: they can

 private:
  struct Problem {
    std::string text;
    bool disk_full = false;
  };

  int rank() const { return tools_.commit != nullptr ? tools_.commit->rank() : 0; }
  void start_threads();
  void fail_save(const std::string& text, bool disk_full);
  template <class Work>
  void guarded(const Work& work) noexcept;

  void copy();
  void run_jobs();
  void give_job(std::function<void()> job);
  void prepare(uint64_t room);
  void write_file();
  void commit();

  void run();
  SaveStatus save();
  void clean_up();
  SaveStatus rounds(const std::function<bool()>& done, bool until_problem);
  SaveStatus agree_on_job();
  void tell_outcome(const SaveStatus& all);
  bool stopped() const { return copier_done_ && !job_; }

  Tools tools_;
  SaveRequest request_;
  uint64_t mark_;
  double begin_s_;
  std::optional<NewCheckpoint> checkpoint_;  // on rank 0; the disk's thread
  std::optional<SavedFile> file_;            // the disk's thread, then the exchange's
  std::vector<RankReport> reports_;          // on rank 0; the exchange's thread, then the disk's
  uint64_t bytes_ = 0, room_ = 0;            // of all ranks; the exchange's thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Problem> problem_;
  uint64_t copied_ = 0, written_ = 0;  // of this rank
  uint64_t progress_ = 0;              // written_ of all ranks
  bool copier_done_ = false, over_ = false, told_ = false;
  std::function<void()> job_;  // that the disk's thread has to do, or does
  double copy_s_ = 0, update_wait_s_ = 0;
  std::optional<SaveOutcome> outcome_;
  std::string broken_;
  std::jthread copier_, disk_, exchange_;
};

}  // namespace hlat
