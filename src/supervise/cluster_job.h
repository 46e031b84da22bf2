// Jobs for clusters, as text: `hlat launch --print slurm|k8s` writes what the scheduler is given. Pure functions of the config and the
// options; what must be known of the cluster is an option with a default that works.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

struct JobOptions {
  std::string config_file;             // as the job will find it
  std::vector<std::string> overrides;  // key=value, handed on
  std::string program = "hlat";        // path or name where the job runs
  std::string name;                    // of the job; empty: the last part of run.dir
  int64_t nodes = 0;                   // 0: as many as the ranks need
  int64_t gpus = -1;                   // on each node; -1: 8, or none where device.backend is cpu
  int64_t ranks_per_node = 0;          // 0: one for each GPU; without GPUs the ranks shared out over the nodes
  // Slurm
  std::string time = "24:00:00";
  std::string partition, account;  // empty: the cluster's default
  std::string mpi = "pmix";        // srun --mpi
  int64_t cpus = 0;                // cores of a rank; 0: all of a node, shared out by hlat
  // Kubernetes
  std::string image;                   // with hlat, Open MPI and sshd
  std::string volume;                  // a claim that exists; empty: one is made
  std::string storage = "1Ti";         // its size
  std::string storage_class;           // empty: the cluster's default
  std::string local_path;              // folder of a node that keeps its cache; empty: one that goes with the pod
  std::vector<std::string> resources;  // name=amount, more resources of a worker
};

// Nodes and ranks of a job.
struct JobShape {
  int64_t nodes = 1, ranks_per_node = 1, gpus = 0;
  bool operator==(const JobShape&) const = default;
};

JobShape job_shape(const Config& config, const JobOptions& options);    // UsageError when the ranks do not fit
std::string job_name(const Config& config, const JobOptions& options);  // letters of a DNS label: a-z, 0-9 and -
std::string shell_word(const std::string& text);                        // one word for a shell, quoted where it must be
int64_t end_s(const Config& config);  // seconds that a run takes at most from a signal to its end, the save included

// kind: slurm | k8s. UsageError when something is missing.
std::string render_job(const std::string& kind, const Config& config, const JobOptions& options);

}  // namespace hlat
