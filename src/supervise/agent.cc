#include "supervise/agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "flight/flight_recorder.h"
#include "flight/rank_view.h"
#include "supervise/evidence.h"
#include "supervise/host_processes.h"
#include "supervise/line_socket.h"

namespace hlat {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr double kAgentLook = 0.1;  // seconds between looks at the rings
constexpr double kReport = 0.2;     // between reports
constexpr double kSilence = 15;     // of the launcher, after which it is gone
constexpr double kConnect = 10;     // to reach it
constexpr double kEndLimit = 30;    // for processes to be gone after SIGKILL

// Ranks are programs of the name of this one. What started them need not be waited for: mpirun does not end while its launcher's end of
// a pipe is gone.
bool ranks_live(const std::string& prefix) {
  std::string own;
  std::getline(std::ifstream("/proc/self/comm") >> std::ws, own);
  const std::vector<HostProcess> all = processes_of(prefix);
  return std::any_of(all.begin(), all.end(), [&](const HostProcess& p) { return p.name == own; });
}

// How often the kernel has ended a process of this machine or container for lack of memory.
int64_t oom_kills() {
  int64_t most = 0;
  for (const char* file : {"/sys/fs/cgroup/memory.events", "/proc/vmstat"}) {
    std::ifstream in(file);
    std::string name;
    for (int64_t value = 0; in >> name >> value;)
      if (name == "oom_kill") most = std::max(most, value);
  }
  return most;
}

class Agent {
 public:
  explicit Agent(const AgentOptions& options) : launcher_(LineSocket::connect(options.addresses, options.port, kConnect)) {
    send({{"hello", options.token}, {"name", options.name}, {"pid", getpid()}, {"version", options.version}});
    heard_ = now_s();
  }

  void run() {
    double reported = 0;
    while (!quits_) {
      const double begin = now_s();
      for (const std::string& line : launcher_.receive()) obey(line);
      if (launcher_.closed() || now_s() - heard_ > kSilence) return launcher_is_gone();
      look();
      if (now_s() - reported >= kReport) {
        report(now_s() - looked_ - kAgentLook);
        reported = now_s();
      }
      launcher_.flush();
      looked_ = begin;
      wait_readable({launcher_.fd()}, kAgentLook);
    }
  }

 private:
  void send(const Json& line) { launcher_.send(json_text(line)); }

  void obey(const std::string& text) {
    heard_ = now_s();
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return;
    if (line.contains("watch")) watch(line);
    if (line.contains("signal")) signal_ranks(line.at("signal"));
    if (line.contains("end")) end(line.at("end"), line.value("wait_s", 0.0));
    if (line.contains("evidence")) tell_evidence(line.at("evidence"));
    if (line.contains("quit")) quits_ = true;
  }

  void watch(const Json& line) {
    job_ = fs::path(line.at("watch").get<std::string>());
    grace_s_ = line.value("grace_s", 60.0);
    rings_.clear();
    std::error_code error;
    fs::create_directories(job_, error);  // where that fails the ranks say so
    fs::permissions(job_, fs::perms::owner_all, error);
  }

  // New rings are found by their names; those that are known are told that somebody watches.
  void look() {
    if (job_.empty()) return;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(job_, error)) {
      if (entry.path().extension() != ".ring" || rings_.contains(entry.path())) continue;
      if (auto ring = RingReader::open(entry.path())) rings_.emplace(entry.path(), Watched{.ring = std::move(*ring)});
    }
    for (auto& [file, watched] : rings_) watched.ring.beat(getpid());
  }

  void report(double late_s) {
    if (job_.empty()) return;
    Json ranks = Json::array();
    for (auto& [file, watched] : rings_) {
      const RankView view = watched.ring.view(watched.steps_told);
      watched.steps_told = view.steps_done;
      ranks.push_back(to_json(view));
    }
    send({{"job", job_.string()}, {"ranks", std::move(ranks)}, {"late_s", std::max(0.0, late_s)}, {"oom_kills", oom_kills()}});
  }

  void signal_ranks(int number) {
    for (auto& [file, watched] : rings_)
      if (const RankView v = watched.ring.view(); !v.gone()) kill(v.pid, number);
  }

  // Processes that were asked to end get their time; whoever is left then is ended.
  void end(const std::string& prefix, double wait_s) {
    const double begin = now_s();
    while (now_s() - begin < wait_s && ranks_live(prefix)) {
      look();  // ranks must not think that their agent is gone
      std::this_thread::sleep_for(std::chrono::duration<double>(kAgentLook));
    }
    Json left = Json::array();
    for (const HostProcess& p : end_processes(prefix, kEndLimit))
      left.push_back(fmt::format("process {} ({}), state {}", p.pid, p.name, p.state));
    if (job_.string().starts_with(prefix)) {
      rings_.clear();
      job_.clear();
    }
    remove_job_folders(prefix);
    send({{"ended", prefix}, {"left", std::move(left)}, {"seconds", now_s() - begin}});
    heard_ = now_s();
  }

  void tell_evidence(const std::string& job) {
    std::string text;
    for (auto& [file, watched] : rings_)
      text += fmt::format("rank {} on {}\n{}\n", watched.ring.ring().rank.load(), host_name(), events_text(watched.ring));
    send({{"evidence", job}, {"text", text}});
  }

  void launcher_is_gone() {
    if (job_.empty()) return;
    signal_ranks(SIGTERM);
    end(job_.string(), grace_s_);
  }

  struct Watched {
    RingReader ring;
    int64_t steps_told = 0;  // whose times the launcher has
  };
  LineSocket launcher_;
  fs::path job_;  // that is watched; empty: none
  double grace_s_ = 60, heard_ = 0, looked_ = now_s();
  bool quits_ = false;
  std::map<fs::path, Watched> rings_;
};

}  // namespace

void run_agent(const AgentOptions& options) { Agent(options).run(); }

}  // namespace hlat
