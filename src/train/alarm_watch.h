// The alarms of a run in its loop. Rank 0 has all numbers and looks; what it finds ends the run on all ranks, who learn it with the vote at
// the step's boundary, or is told.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "alarm/alarms.h"
#include "train/loss_event.h"
#include "train/loss_policy.h"

namespace hlat {

// What the other ranks must know of an alarm that ends the run.
struct AlarmVote {
  int64_t rule = -1;  // AlarmRule; -1: none
  int64_t since = 0;
  bool ends() const { return rule >= 0; }
};

class AlarmWatch {
 public:
  // State and policy must outlive this. leads: this is rank 0; the others find nothing by themselves.
  AlarmWatch(const Config& config, AlarmState& state, const LossPolicy& policy, bool leads);

  // What was told of the step under way, for the documents of a spike.
  void told(const LossEvent& event);
  // The step is measured; what is found waits for answer().
  AlarmVote look(const StepMetrics& m, const LossVerdict& verdict);
  // Tells what was found, and throws FailedStep where the ranks agree that it ends the run.
  void answer(const StepMetrics& m, const AlarmVote& agreed, const std::function<void(const LossEvent&)>& tell);

 private:
  const LossPolicy& policy_;
  std::optional<Alarms> alarms_;  // on rank 0
  std::string documents_;         // of the step under way, where it was told
  std::vector<Alarm> found_;
};

}  // namespace hlat
