// A batch script for Slurm: `sbatch FILE`. One hlat launch on the first node starts and watches the ranks. The script
// - is told by a signal before the time limit, hands it on, and has the job queued again when the run is saved (exit code 6);
// - checks every node with hlat check before; those that fail are written to a file of the run folder, and the job is submitted again
//   without them.
#pragma once

#include <string>

#include "supervise/cluster_job.h"

namespace hlat {

std::string slurm_job(const Config& config, const JobOptions& options);

}  // namespace hlat
