// The options of `hlat launch --print slurm|k8s`: what must be known of a cluster to write a job for it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/config_args.h"
#include "supervise/cluster_job.h"

namespace hlat {

struct JobArgs {
  std::string print;  // the kind of job; empty: none is printed
  JobOptions options;
};

// `args` must live until the command has run.
void add_job_args(CLI::App& command, JobArgs& args);

// The job as text. The config is not resolved on this machine: its data need not be here.
std::string job_text(const JobArgs& args, const ConfigArgs& config);

}  // namespace hlat
