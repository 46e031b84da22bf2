// The command that starts the ranks of an attempt: hlat train itself for one rank on this host, else mpirun or srun with hlat train.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "supervise/hosts.h"

namespace hlat {

struct RankCommand {
  std::vector<std::string> train;                // words of hlat train, the program first
  std::vector<Host> hosts;                       // in rank order, `slots` the ranks of each
  std::map<std::string, std::string> variables;  // that ranks get
  int64_t grace_s = 60;                          // that mpirun leaves ranks it was asked to end
  bool mpi_is_set = false;                       // srun's environment says how ranks meet (SLURM_MPI_TYPE)
};

// For srun, which places ranks by it (SLURM_HOSTFILE): a line for each rank, in their order.
std::string srun_hostfile(const std::vector<Host>& hosts);

enum class Starter { direct, mpirun, srun };

// launch.starter, and for `auto` srun inside a Slurm job where it is to be had. One rank on this host needs neither.
Starter starter_of(const LaunchConfig& launch, const std::vector<Host>& hosts, bool in_slurm_job);

// The command for these words. srun finds its hosts in a file that is written to `folder`.
RankCommand rank_command(std::vector<std::string> words, const std::vector<Host>& hosts, Starter starter,
                         std::map<std::string, std::string> variables, int64_t grace_s, const std::filesystem::path& folder);

std::vector<std::string> start_words(const RankCommand& command, Starter starter, const LaunchConfig& launch, bool as_root);

}  // namespace hlat
