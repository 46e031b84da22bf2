// The processes of a job on this host, by what the launcher put into their environment (HLAT_JOB), and their certain end. Another
// container or namespace on the same kernel counts as another host.
//
// Jobs of a run are named FOLDER/hlat-RUN-LAUNCHER-N: rings lie in that folder, in memory. RUN tells the run folder, so that whatever an
// earlier launcher of the same run has left can be found; LAUNCHER is a word of its own for each launcher, so that what one leaves
// behind never ends the processes of the next. A name that ends with '-' means all jobs that begin with it, any other name one job.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hlat {

std::filesystem::path job_folder(const std::filesystem::path& run_dir, const std::string& launcher, int64_t number);
std::string run_prefix(const std::filesystem::path& run_dir);  // of all job folders of that run

struct HostProcess {
  int pid = 0;
  char state = '?';  // as in /proc/PID/stat
  std::string job;   // HLAT_JOB
  std::string name;  // of the program
};

bool is_of_job(const std::string& job, const std::string& name);  // whether a name of a job, or of jobs, means this one

// Those of the job or jobs of this name, this process and its parents left out.
std::vector<HostProcess> processes_of(const std::string& name);

// Ends them all: SIGKILL, again and again, until none is left or so many seconds have passed. Returns those that are left: processes that
// the kernel does not let go.
std::vector<HostProcess> end_processes(const std::string& name, double limit_s);

// Rings and folders of jobs of this name, whose processes are gone.
void remove_job_folders(const std::string& name);

}  // namespace hlat
