// Which notes and events of a run a report has, where there are too many of them: of what is off the latest and the largest, so that
// neither the end of a run nor the worst of it is left out.
#pragma once

#include <cstddef>
#include <vector>

#include "record/run_overview.h"
#include "report/run_notes.h"

namespace hlat {

// Of at most `most` notes: the latest half, and of the others the largest; in their order.
// Losses: furthest above the median before, those that are not finite above all, those that were not computed below all.
// Alarms: furthest from their limit, as a factor; those without a factor above all.
std::vector<const LossNote*> kept_losses(const std::vector<LossNote>& all, size_t most);
std::vector<const AlarmNote*> kept_alarms(const std::vector<AlarmNote>& all, size_t most);

struct KeptEvents {
  std::vector<const RunEvent*> events;  // in their order
  size_t all = 0, all_saves = 0;        // of the run: all but saves that went well, and those
};
// At most `most`: first what stands nowhere else, then spikes, skips and alarms, then saves that went well; of each the latest.
KeptEvents kept_events(const RunOverview& run, size_t most);

}  // namespace hlat
