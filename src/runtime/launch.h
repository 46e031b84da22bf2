// How this process was started: its place among the ranks, as the launcher's environment tells it. Open MPI's mpirun, MPICH's
// and Intel's mpirun (Hydra), srun and torchrun are known. A launcher inside another one counts: mpirun within a Slurm
// job, torchrun under srun. A Slurm allocation or batch script without srun is one process, not a launch.
#pragma once

#include <string>

#include "base/environment.h"

namespace hlat {

struct Launch {
  int rank = 0;
  int ranks = 1;
  std::string by = {};  // "mpirun" | "srun" | "torchrun"; empty: started by hand
  bool operator==(const Launch&) const = default;
};

// Throws UsageError, naming the variables, when they are malformed or contradict each other.
Launch detect_launch(const Environment& env);

// Several ranks talk through MPI. UsageError, with what to do, when their launcher gave MPI no way to meet: torchrun,
// variables left over in a shell, or srun without --mpi.
void check_rendezvous(const Launch& launch, const Environment& env);

}  // namespace hlat
