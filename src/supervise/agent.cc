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
#include <thread>
#include <utility>

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
constexpr double kIdle = 1;         // between signs of life
constexpr double kHeldUp = 0.3;     // a look that comes so much later than planned is a delay
constexpr double kSilence = 15;     // of the launcher, after which it is gone
constexpr double kConnect = 10;     // to reach it
constexpr double kEndLimit = 30;    // for processes to be gone after SIGKILL
constexpr double kEndSlice = 0.5;   // of the time for processes to be gone, between signs of life

// Ranks are programs of the name of this one. What started them need not be waited for: mpirun does not end while its launcher's end of
// a pipe is gone.
bool ranks_live(const std::string& job) {
  std::string own;
  std::getline(std::ifstream("/proc/self/comm") >> std::ws, own);
  const std::vector<HostProcess> all = processes_of(job);
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
  explicit Agent(const AgentOptions& options) : launcher_(call(options)), draining_(options.draining) {
    send({{"hello", options.token}, {"name", options.name}, {"pid", getpid()}, {"version", options.version}});
    heard_ = now_s();
  }

  void run() {
    try {
      while (!quits_ && !launcher_.closed() && now_s() - heard_ <= kSilence) turn();
    } catch (...) {
      leave();
      throw;
    }
    leave();
  }

 private:
  static LineSocket call(const AgentOptions& options) {
    if (fs::exists(options.draining)) fail<FaultError>("this host is being drained ({})", options.draining);
    return LineSocket::connect(options.addresses, options.port, kConnect);
  }

  void turn() {
    const double begin = now_s();
    if (const double late = begin - looked_ - kAgentLook; late > kHeldUp) late_s_ += late;
    looked_ = begin;
    for (const std::string& line : launcher_.receive()) obey(line);
    look();
    if (!job_.empty() && now_s() - spoke_ >= kReport) report();
    if (job_.empty()) idle();
    launcher_.flush();
    if (!quits_) wait_readable({launcher_.fd()}, kAgentLook);
  }

  void send(const Json& line) {
    launcher_.send(json_text(line));
    spoke_ = now_s();
  }

  // Without a job there is nothing to report.
  void idle() {
    if (now_s() - spoke_ < kIdle) return;
    send({{"idle", 1}});
    quits_ = quits_ || fs::exists(draining_);
  }

  // A line that cannot be read is none of the launcher's.
  void obey(const std::string& text) try {
    heard_ = now_s();
    const Json line = Json::parse(text);
    if (line.contains("watch")) watch(line);
    if (line.contains("signal")) signal_ranks(line.at("signal"));
    if (line.contains("end")) end(line.at("end"), line.value("wait_s", 0.0), line.value("limit_s", kEndLimit));
    if (line.contains("evidence")) tell_evidence(line.at("evidence"));
    if (line.contains("quit")) quits_ = true;
  } catch (const nlohmann::json::exception&) {
  }

  void watch(const Json& line) {
    job_ = fs::path(line.at("watch").get<std::string>());
    grace_s_ = line.value("grace_s", 60.0);
    rings_.clear();
    asked_ = 0;
    late_s_ = spoke_ = 0;  // reported at once
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
      auto ring = RingReader::open(entry.path());
      if (!ring) continue;
      Watched& watched = rings_.emplace(entry.path(), Watched{.ring = std::move(*ring)}).first->second;
      if (asked_ != 0) signal_rank(watched, asked_);
    }
    for (auto& [file, watched] : rings_) watched.ring.beat(getpid());
  }

  void report() {
    Json ranks = Json::array();
    for (auto& [file, watched] : rings_) {
      const RankView view = watched.ring.view(watched.steps_told);
      watched.steps_told = view.steps_done;
      ranks.push_back(to_json(view));
    }
    send({{"job", job_.string()}, {"ranks", std::move(ranks)}, {"late_s", std::exchange(late_s_, 0.0)}, {"oom_kills", oom_kills()}});
  }

  struct Watched {
    RingReader ring;
    int64_t steps_told = 0;  // whose times the launcher has
  };

  static void signal_rank(const Watched& watched, int number) {
    if (const RankView v = watched.ring.view(); !v.gone()) kill(v.pid, number);
  }

  void signal_ranks(int number) {
    asked_ = number;
    for (const auto& [file, watched] : rings_) signal_rank(watched, number);
  }

  // Processes that were asked to end get their time; whoever is left then is ended.
  void end(const std::string& name, double wait_s, double limit_s) {
    const double begin = now_s();
    while (now_s() - begin < wait_s && ranks_live(name)) {
      look();  // ranks must not think that their agent is gone
      stay();
      std::this_thread::sleep_for(std::chrono::duration<double>(kAgentLook));
    }
    std::vector<HostProcess> left;
    for (const double limit = now_s() + limit_s;; stay())
      if (left = end_processes(name, std::min(kEndSlice, limit_s)); left.empty() || now_s() > limit) break;
    Json words = Json::array();
    for (const HostProcess& p : left) words.push_back(fmt::format("process {} ({}), state {}", p.pid, p.name, p.state));
    if (is_of_job(job_.string(), name)) {
      rings_.clear();
      job_.clear();
    }
    remove_job_folders(name);
    send({{"ended", name}, {"left", std::move(words)}, {"seconds", now_s() - begin}});
    quits_ = quits_ || (job_.empty() && fs::exists(draining_));
    heard_ = looked_ = now_s();
  }

  // In a long work: the launcher hears that this agent lives.
  void stay() {
    if (now_s() - spoke_ >= kIdle) send({{"idle", 1}});
    launcher_.flush();
  }

  void tell_evidence(const std::string& job) {
    std::string text;
    for (auto& [file, watched] : rings_)
      text += fmt::format("rank {} on {}\n{}\n", watched.ring.ring().rank.load(), host_name(), events_text(watched.ring));
    send({{"evidence", job}, {"text", text}});
  }

  // Nobody watches the job from now on.
  void leave() {
    if (job_.empty()) return;
    signal_ranks(SIGTERM);
    end(job_.string(), grace_s_, kEndLimit);
  }

  LineSocket launcher_;
  fs::path draining_;
  fs::path job_;  // that is watched; empty: none
  double grace_s_ = 60, heard_ = 0, looked_ = now_s(), spoke_ = 0, late_s_ = 0;
  int asked_ = 0;  // the signal that ranks of the job get when they start; 0: none
  bool quits_ = false;
  std::map<fs::path, Watched> rings_;
};

}  // namespace

void run_agent(const AgentOptions& options) { Agent(options).run(); }

}  // namespace hlat
