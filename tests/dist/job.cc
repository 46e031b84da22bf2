#include "dist/job.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/paths.h"

namespace hlat::test {
namespace {

constexpr const char* kMark = "HLAT_TEST_JOB";

constexpr const char* kTiny = R"(model: {layers: 4, hidden: 64, heads: 8, kv_heads: 2, ffn: 84, vocab: 512}
train: {steps: 5, seq_len: 32, global_batch: 8, micro_batch: 1}
optim: {lr: 2e-3, warmup: 2}
run: {tensorboard: false, sample_lines: 0}
device: {backend: cpu, threads: 1}
)";

// Empty for a process that is gone, or a zombie.
std::map<std::string, std::string> environment_of(const std::filesystem::path& process) {
  std::ifstream in(process / "environ", std::ios::binary);
  std::map<std::string, std::string> out;
  for (std::string entry; std::getline(in, entry, '\0');)
    if (const size_t eq = entry.find('='); eq != std::string::npos) out[entry.substr(0, eq)] = entry.substr(eq + 1);
  return out;
}

// Never returns: the caller is the child.
[[noreturn]] void become(const TempDir& dir, const Job::Words& words, const std::map<std::string, std::string>& variables) {
  setpgid(0, 0);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  const auto redirect = [&](int fd, const std::string& path, int flags) {
    const int file = open(path.c_str(), flags, 0600);
    if (file < 0 || dup2(file, fd) < 0) _exit(126);
  };
  redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
  redirect(STDOUT_FILENO, dir.path("stdout"), O_WRONLY | O_CREAT | O_TRUNC);
  redirect(STDERR_FILENO, dir.path("stderr"), O_WRONLY | O_CREAT | O_TRUNC);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (chdir(dir.path().c_str()) == 0) execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

bool within(double limit_s, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

Job::Job(int ranks, const Words& args, const Words& launcher, const std::map<std::string, std::string>& variables, const Words& before) {
  Words words = before;
  if (ranks > 0) {
    for (const char* word : {HLAT_MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n"}) words.emplace_back(word);
    words.push_back(std::to_string(ranks));
    words.insert(words.end(), launcher.begin(), launcher.end());
  }
  words.emplace_back(hlat_binary());
  words.insert(words.end(), args.begin(), args.end());
  auto marked = variables;
  marked[kMark] = dir_.path();
  dir_.write("tiny.yaml", kTiny);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) become(dir_, words, marked);
}

Job::~Job() {
  if (pid_ < 0) return;
  for (const auto& [rank, pid] : ranks()) kill(pid, SIGKILL);
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::map<int, pid_t> Job::ranks() const {
  std::map<int, pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto env = environment_of(entry.path());
    const auto mark = env.find(kMark), rank = env.find("OMPI_COMM_WORLD_RANK");
    if (mark != env.end() && mark->second == dir_.path() && rank != env.end()) found[std::stoi(rank->second)] = std::stoi(name);
  }
  return found;
}

void Job::await_step(int64_t step) const {
  const bool came = within(60, [&] {
    const auto lines = metrics();
    return !lines.empty() && lines.back()["step"] >= step;
  });
  if (!came) throw std::runtime_error("no step " + std::to_string(step) + " after a minute: " + slurp(dir_.path("stderr")));
}

void Job::terminate() const { kill(pid_, SIGTERM); }

RunResult Job::wait(double limit_s) {
  int status = 0;
  if (!within(limit_s, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }))
    throw std::runtime_error("the job has not ended in time; it wrote: " + slurp(dir_.path("stderr")));
  pid_ = -1;
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = slurp(dir_.path("stdout")),
          .err = slurp(dir_.path("stderr"))};
}

std::string Job::log() const { return slurp(dir_.path("run/log.txt")); }

std::vector<nlohmann::json> Job::lines(const std::string& file) const {
  std::ifstream in(dir_.path("run/" + file));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line) && !in.eof();)
    lines.push_back(nlohmann::json::parse(line));  // the last may be half written
  return lines;
}

Job::Words tiny_run(const Job::Words& more) {
  Job::Words words = {"train", "--config", "tiny.yaml", "run.dir=run"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<nlohmann::json> launch_events(const Job& job, const std::string& kind) {
  std::vector<nlohmann::json> found = job.events();
  std::erase_if(found, [&](const nlohmann::json& e) { return e["kind"] != kind || e.value("by", "") != "launch"; });
  return found;
}

}  // namespace hlat::test
