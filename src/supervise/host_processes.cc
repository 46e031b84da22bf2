#include "supervise/host_processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "base/machine.h"
#include "base/rng.h"
#include "flight/flight_ring.h"

namespace hlat {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRingFolder = "/dev/shm";

std::string proc_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string job_in(const std::string& environment) {
  const std::string name = std::string(kFlightVariable) + "=";
  size_t at = environment.starts_with(name) ? 0 : environment.find('\0' + name);
  if (at == std::string::npos) return {};
  at += name.size() + (environment[at] == '\0' ? 1 : 0);
  return environment.substr(at, environment.find('\0', at) - at);
}

// Where this process may look for others of its host: they have the same shared memory.
std::string host_space(const fs::path& process) {
  std::error_code error;
  const fs::path at = fs::read_symlink(process / "ns/ipc", error);
  return error ? "" : at.string();
}

struct Stat {
  char state = 'X';
  int parent = 0;
  std::string name;
};

Stat stat_of(const fs::path& process) {
  const std::string text = proc_text(process / "stat");
  const size_t begin = text.find('('), end = text.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end + 4 > text.size()) return {};
  Stat s{.state = text[end + 2], .name = text.substr(begin + 1, end - begin - 1)};
  std::from_chars(text.data() + end + 4, text.data() + text.size(), s.parent);
  return s;
}

// This process and those that started it: a launcher inside a job of another run must not end itself.
std::set<int> own_line() {
  std::set<int> line;
  for (int pid = getpid(); pid > 0 && line.insert(pid).second;) pid = stat_of(fs::path("/proc") / std::to_string(pid)).parent;
  return line;
}

}  // namespace

std::string run_prefix(const fs::path& run_dir) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(run_dir), error);
  return fmt::format("{}/hlat-{:016x}-", kRingFolder, hash_name(whole.string()));
}

fs::path job_folder(const fs::path& run_dir, const std::string& launcher, int64_t number) {
  return fmt::format("{}{}-{}", run_prefix(run_dir), launcher, number);
}

bool is_of_job(const std::string& job, const std::string& name) { return name.ends_with('-') ? job.starts_with(name) : job == name; }

std::vector<HostProcess> processes_of(const std::string& job_name) {
  const std::set<int> own = own_line();
  const std::string here = host_space("/proc/self");
  std::vector<HostProcess> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size() || own.contains(pid)) continue;
    std::string job = job_in(proc_text(entry.path() / "environ"));  // empty for a process that is gone, or a zombie
    if (job.empty() || !is_of_job(job, job_name) || host_space(entry.path()) != here) continue;
    const Stat stat = stat_of(entry.path());
    found.push_back({.pid = pid, .state = stat.state, .job = std::move(job), .name = stat.name});
  }
  return found;
}

std::vector<HostProcess> end_processes(const std::string& name, double limit_s) {
  const double limit = now_s() + limit_s;
  for (;;) {
    std::vector<HostProcess> left = processes_of(name);
    if (left.empty() || now_s() > limit) return left;
    for (const HostProcess& p : left) kill(p.pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void remove_job_folders(const std::string& name) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kRingFolder, error))
    if (is_of_job(entry.path().string(), name)) fs::remove_all(entry.path(), error);
}

}  // namespace hlat
