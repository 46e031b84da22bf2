// Alarms: what a run's own numbers say is wrong before its loss does. Fed once per step, on rank 0, which has all numbers; what it finds
// is for the loss policy (train/loss_policy.h) to answer.
//
//   memories begin anew   with a stage of the data, and after a resume with another model, precision, optimizer, batch or data
//   settled               once the warm-up and half as many steps, 20 to 500, are past; most rules wait for that
//   told                  when a rule finds something for the first time, or after 200 steps and 10 looks without; while it lasts, again
//                         after 1000 steps, then 4000, 16000 ...
#pragma once

#include <vector>

#include "alarm/rules.h"

namespace hlat {

struct Alarm {
  AlarmRule rule = AlarmRule::spike;
  int64_t step = 0;
  int64_t since = 0;  // the step with which it began, as far as that can be told
  double value = 0, limit = 0;
  std::string evidence = {};  // in words, with the numbers
  std::string advice = {};    // what to try
};

class Alarms {
 public:
  // The state must outlive this.
  Alarms(const Config& config, AlarmState& state);

  // The step is over. spike: what the loss policy says of it where it is one and was not skipped, with its documents; else empty.
  std::vector<Alarm> add(const StepMetrics& m, const std::string& spike = {});

 private:
  bool begins_stage(int64_t step) const;
  static bool is_told(AlarmTold& told, int64_t step, const Look& look);

  Config config_;
  AlarmState& state_;
  AlarmSet rules_;
};

}  // namespace hlat
