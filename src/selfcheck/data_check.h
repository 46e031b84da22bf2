// The data of a run: ranks must read the rows that one rank alone would, whatever their number, and no row twice. The run's own sources are
// opened as the run does it, which makes missing indices; some short rows of its first steps are read.
#pragma once

#include "selfcheck/check_model.h"
#include "selfcheck/verdict.h"

namespace hlat {

struct RowHash {
  int64_t step = 0, row = 0;  // of the whole batch
  uint64_t hash = 0;
  int rank = 0;  // that read it
};
// Words on rows that ranks read otherwise than `one` rank does; empty: none.
std::string other_rows(const SelfCheckRun& run, const std::vector<RowHash>& read, const std::vector<RowHash>& one);
// Rows that are there before, of those of one rank of each replica.
std::vector<std::pair<RowHash, RowHash>> repeated_rows(const std::vector<RowHash>& read);

// Collective. `model`: whose planted faults meet the rows.
ModelVerdict check_data(const SelfCheckRun& run, CheckModel& model);

}  // namespace hlat
