#include "cli/study_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/machine.h"
#include "config/print.h"
#include "supervise/child.h"
#include "supervise/rank_start.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

// Living processes of the session that a child leads, itself left out: mpirun gives each rank a group of its own.
std::vector<pid_t> session_members(pid_t leader) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (fs::directory_iterator entry("/proc", gone), end; !gone && entry != end; entry.increment(gone)) {
    const std::string name = entry->path().filename().string();
    if (name.empty() || name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry->path() / "stat", std::ios::binary);
    const std::string stat{std::istreambuf_iterator<char>(in), {}};
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(stat.substr(name_end + 1));
    char state = '?';
    pid_t parent = 0, group = 0, session = 0;
    fields >> state >> parent >> group >> session;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (fields && session == leader && pid != leader && state != 'Z' && state != 'X') found.push_back(pid);
  }
  return found;
}

// mpirun leaves its ranks little time when it gets Ctrl-C; SIGUSR1 it only hands on (docs/exit-codes.md).
class StudyChild : public RunProcess {
 public:
  StudyChild(const std::vector<std::string>& words, const ChildOptions& options, Starter starter)
      : child_(words, options), starter_(starter) {}
  bool running() override { return child_.running(); }
  int status() override { return child_.status().value_or(-1); }
  void ask_to_end() override { child_.signal(starter_ == Starter::direct ? SIGINT : SIGUSR1); }
  void end() override {
    for (const pid_t pid : session_members(child_.pid())) ::kill(pid, SIGKILL);
    child_.end();
  }
  bool only_starter() override { return starter_ != Starter::direct && session_members(child_.pid()).empty(); }

 private:
  Child child_;
  Starter starter_;
};

void write_config(const fs::path& folder, const Config& config) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_storage(error.value(), "cannot create the run folder " + folder.string());
  fs::remove(folder / kRunConfig, error);
  OutputFile(folder / kRunConfig, OutputFile::Mode::create_new).write(to_yaml(config));
}

// As execvp() finds it.
bool is_in_path(const std::string& program) {
  const char* given = std::getenv("PATH");
  std::istringstream folders(given == nullptr ? "/bin:/usr/bin" : given);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = (folder.empty() ? fs::path(".") : fs::path(folder)) / program;
    std::error_code none;
    if (fs::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<RunProcess> start_run_process(const PlannedRun& run, bool fresh) {
  const fs::path folder = run.config.run.dir;
  RankCommand command;
  command.train = {own_program(), "train", "--config", (folder / kRunConfig).string(), "--json"};
  if (fresh) command.train.emplace_back("--fresh");
  command.hosts = {{host_name(), static_cast<int>(run.ranks)}};
  command.grace_s = run.config.checkpoint.grace_s;
  const Starter starter = starter_of(run.config.launch, command.hosts, false);
  const std::vector<std::string> words = start_words(command, starter, run.config.launch, ::geteuid() == 0);
  if (starter != Starter::direct && !is_in_path(words.front()))
    fail<UsageError>("{} was not found: no folder of PATH has it; it starts the {} rank{} of this run (launch.starter = {})", words.front(),
                     run.ranks, run.ranks == 1 ? "" : "s", run.config.launch.starter);
  write_config(folder, run.config);
  const ChildOptions options{
      .output_file = (folder / kRunSummary).string(), .errors_file = (folder / kRunOutput).string(), .ends_with_parent = true};
  return std::make_unique<StudyChild>(words, options, starter);
}

}  // namespace hlat
