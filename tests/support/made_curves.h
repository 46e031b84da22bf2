// Made curves of a run for tests of alarms: healthy steps, and changes of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "alarm/alarms.h"

namespace hlat {

double alarm_noise(int64_t step, uint64_t stream);  // uniform in [-1, 1), the same in every run
Config watched();                                   // a config whose alarms begin early

// A loss that falls as a power of the step, a norm that falls too, both with noise; monitors every ten steps.
StepMetrics healthy_step(int64_t step);

using Change = std::function<void(StepMetrics&)>;
void monitored(StepMetrics& m, const std::function<void(Monitors&)>& change);  // nothing in a step that was not measured

// What is raised in steps 1 to `last` when `change` is made to the steps from `from` on; and the steps in which it is, with all changed.
std::vector<Alarm> alarms_of(const Config& config, int64_t last, int64_t from, const Change& change);
std::vector<int64_t> told_in(const Config& config, int64_t last, const Change& change);

}  // namespace hlat
