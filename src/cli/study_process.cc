#include "cli/study_process.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/machine.h"
#include "config/print.h"
#include "supervise/child.h"
#include "supervise/rank_start.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

// mpirun leaves its ranks little time when it gets Ctrl-C; SIGUSR1 it only hands on (docs/exit-codes.md).
class StudyChild : public RunProcess {
 public:
  StudyChild(const std::vector<std::string>& words, const ChildOptions& options, int end_signal)
      : child_(words, options), end_signal_(end_signal) {}
  bool running() override { return child_.running(); }
  int status() override { return child_.status().value_or(-1); }
  void ask_to_end() override { child_.signal(end_signal_); }
  void end() override { child_.end(); }

 private:
  Child child_;
  int end_signal_;
};

void write_config(const fs::path& folder, const Config& config) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_storage(error.value(), "cannot create the run folder " + folder.string());
  fs::remove(folder / kRunConfig, error);
  OutputFile(folder / kRunConfig, OutputFile::Mode::create_new).write(to_yaml(config));
}

}  // namespace

std::unique_ptr<RunProcess> start_run_process(const PlannedRun& run, bool fresh) {
  const fs::path folder = run.config.run.dir;
  write_config(folder, run.config);
  RankCommand command;
  command.train = {own_program(), "train", "--config", (folder / kRunConfig).string(), "--json"};
  if (fresh) command.train.emplace_back("--fresh");
  command.hosts = {{host_name(), static_cast<int>(run.ranks)}};
  command.grace_s = run.config.checkpoint.grace_s;
  const Starter starter = starter_of(run.config.launch, command.hosts, false);
  const ChildOptions options{
      .output_file = (folder / kRunSummary).string(), .errors_file = (folder / kRunOutput).string(), .ends_with_parent = true};
  return std::make_unique<StudyChild>(start_words(command, starter, run.config.launch, ::geteuid() == 0), options,
                                      starter == Starter::direct ? SIGINT : SIGUSR1);
}

}  // namespace hlat
