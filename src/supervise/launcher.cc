#include "supervise/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/machine.h"
#include "base/signals.h"
#include "flight/flight_ring.h"
#include "record/folder_lease.h"
#include "record/progress.h"
#include "supervise/attempt.h"
#include "supervise/elastic.h"
#include "supervise/host_processes.h"

namespace hlat {

namespace fs = std::filesystem;

namespace {

constexpr double kAgentStart = 30;    // seconds for the agents of all hosts to answer
constexpr double kAgentAgain = 5;     // for one that was lost
constexpr double kStillWaiting = 60;  // between lines about hosts that are waited for

std::vector<std::string> names_of(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& h : hosts) names.push_back(h.name);
  return names;
}

fs::path make_launch_folder(const Config& config) {
  const fs::path folder = fs::path(config.run.dir) / "launch";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail<UsageError>("run.dir = {}: {}", config.run.dir, error.message());
  return folder;
}

class Launcher {
 public:
  explicit Launcher(const LaunchSetup& setup)
      : setup_(setup),
        config_(setup.config),
        signals_([this](const EndSignals::Signal& s) { twice_ = twice_ || !s.first; }),
        folder_(make_launch_folder(config_)),
        lease_(folder_, static_cast<double>(config_.run.lease_s), setup.say),
        journal_(config_.run.dir, setup.version),
        agents_({.remote = split_words(config_.launch.remote), .by_srun = setup.in_slurm_job}, setup.version),
        fresh_(setup.fresh) {}

  LaunchEnd run() {
    journal_.launch(lease_.taken_over().empty() ? "started" : "started again: " + lease_.taken_over());
    meet_hosts();
    clear_leftovers();
    for (;;) {
      const std::optional<MeshChoice> mesh = await_mesh();
      if (!mesh) return stopped_by_signal(0);
      if (!check_hosts(*mesh)) continue;
      const AttemptEnd end = attempt(*mesh);
      if (end.failure.kind == FailureCause::finished) {
        journal_.finished(end.reached);
        return {.restarts = restarts_};
      }
      keep_evidence(end);
      if (end.failure.asked) return stopped_by_signal(end.failure.exit_code);
      history_.push_back(end.failure);
      const Decision decision = decide(history_, config_.launch, config_.loss);
      if (!decision.restart) return stopped(decision, end);
      if (!follow(decision, end)) return stopped_by_signal(0);
    }
  }

 private:
  void meet_hosts() {
    absent_ = agents_.ensure(names_of(setup_.hosts), kAgentStart);
    for (const auto& [host, why] : absent_) setup_.say(fmt::format("host {}: {}", host, why));
    if (absent_.size() == setup_.hosts.size()) fail<FaultError>("no host of {} answers", setup_.hosts.size());
  }

  // Ranks of an earlier launcher that is gone: their agents have asked them to save and end.
  void clear_leftovers() {
    const JobEnd end = agents_.end(run_prefix(config_.run.dir), static_cast<double>(config_.checkpoint.grace_s));
    if (end.seconds > 1) setup_.say(fmt::format("waited {:.0f} s for the ranks of an earlier launcher to end", end.seconds));
    for (const std::string& words : end.left) setup_.say("cannot be ended: " + words);
  }

  std::vector<Host> living() const {
    std::vector<Host> out;
    for (const Host& h : setup_.hosts)
      if (agents_.lives(h.name) && !evicted_.contains(h.name)) out.push_back(h);
    return out;
  }

  bool complete(const MeshChoice& mesh) const {
    const MeshChoice whole = choose_mesh(config_, setup_.hosts, setup_.hosts);
    return mesh.possible() && mesh.ranks() >= whole.ranks();
  }

  // Tries the hosts that are missing, at least once, and until launch.patience_s have passed since they went; fewer ranks only after that.
  // Nothing: a signal came.
  std::optional<MeshChoice> await_mesh() {
    const double begin = now_s();
    if (!complete(choose_mesh(config_, setup_.hosts, living()))) absent_ = agents_.ensure(names_of(setup_.hosts), kAgentAgain);
    double told = begin;
    for (bool waited = false;;) {
      const MeshChoice mesh = choose_mesh(config_, setup_.hosts, living());
      const bool patient = newly_gone();
      if (mesh.possible() && (complete(mesh) || !patient)) {
        if (waited) journal_.wait(now_s() - begin, mesh.words);
        return mesh;
      }
      if (signals_.asked() != 0) return std::nullopt;
      if (!waited || now_s() - told > kStillWaiting) {
        setup_.say(fmt::format("waiting for hosts: {}", mesh.words));
        told = now_s();
      }
      waited = true;
      absent_ = agents_.ensure(names_of(setup_.hosts), kAgentAgain);
      agents_.poll(0.5);
    }
  }

  // Whether a host is missing that was there, or asked for, less than launch.patience_s ago.
  bool newly_gone() {
    bool newly = false;
    for (const Host& h : setup_.hosts) {
      if (agents_.lives(h.name) || evicted_.contains(h.name)) {
        gone_since_.erase(h.name);
        continue;
      }
      const double since = gone_since_.try_emplace(h.name, now_s()).first->second;
      newly = newly || now_s() - since < static_cast<double>(config_.launch.patience_s);
    }
    return newly;
  }

  // hlat check --short on the hosts of the mesh. False: hosts that it found bad are left out from now on.
  bool check_hosts(const MeshChoice& mesh) {
    const bool due = config_.launch.check == "restarts" || (config_.launch.check == "start" && attempts_ == 0);
    if (!due) return true;
    const double begin = now_s();
    RankCommand command{.train = setup_.check, .hosts = mesh.hosts, .variables = {}, .grace_s = 1};
    const Starter starter = starter_of(config_.launch, mesh.hosts, setup_.in_slurm_job);
    Child child(start_words(command, starter, config_.launch, geteuid() == 0), {.take_errors = true});
    std::string text;
    while (child.running() && !twice_) {
      agents_.poll(0.1);
      text += child.read_errors();
      if (signals_.asked() != 0) child.end();
    }
    text += child.read_errors();
    const bool passed = child.status() == 0;
    journal_.check(now_s() - begin, passed, passed ? "all ranks are well" : text);
    if (passed || signals_.asked() != 0) return true;
    setup_.say("hlat check: " + text);
    return leave_out_bad_hosts(text);
  }

  // The check names hosts; without one that can be left out the ranks are started all the same: they fail, or they do not.
  bool leave_out_bad_hosts(const std::string& text) {
    for (const Host& h : setup_.hosts)
      if (text.find(" on " + h.name + ":") != std::string::npos && !evicted_.contains(h.name) && living().size() > 1) {
        evict(h.name, "hlat check found it bad");
        return false;
      }
    return true;
  }

  void evict(const std::string& host, const std::string& why) {
    evicted_.insert(host);
    journal_.evict(host, why);
    setup_.say(fmt::format("host {} is left out: {}", host, why));
  }

  std::vector<std::string> train_words() const {
    std::vector<std::string> words = setup_.train;
    if (fresh_) words.emplace_back("--fresh");
    if (before_ > 0) words.insert(words.end(), {"--before", std::to_string(before_)});
    if (!skips_.empty()) words.insert(words.end(), {"--skip", fmt::format("{}", fmt::join(skips_, ","))});
    return words;
  }

  AttemptEnd attempt(const MeshChoice& mesh) {
    ++attempts_;
    const std::string job = job_folder(config_.run.dir, attempts_);
    std::map<std::string, std::string> variables{{kFlightVariable, job}, {"HLAT_ATTEMPT", std::to_string(attempts_)}};
    if (setup_.columns > 0) variables[kColumnsVariable] = std::to_string(setup_.columns);
    AttemptSetup one{
        .config = config_,
        .command = {.train = train_words(), .hosts = mesh.hosts, .variables = variables, .grace_s = config_.checkpoint.grace_s},
        .starter = starter_of(config_.launch, mesh.hosts, setup_.in_slurm_job),
        .run = run_prefix(config_.run.dir),
        .job = job,
        .ranks = mesh.ranks(),
        .asked = [this] { return signals_.asked(); },
        .asked_twice = [this] { return twice_.load(); },
        .show = setup_.show,
        .say = setup_.say,
        .journal = journal_};
    journal_.attempt({.number = attempts_,
                      .ranks = mesh.ranks(),
                      .mesh = fmt::format("tp {}, pp {}, dp {}", mesh.tp, mesh.pp, mesh.dp),
                      .hosts = names_of(mesh.hosts),
                      .from = history_.empty() ? 0 : history_.back().saved});
    if (attempts_ == 1 || mesh.words != mesh_words_) setup_.say(mesh.words);
    mesh_words_ = mesh.words;
    if (attempts_ > 1) agents_.end(run_prefix(config_.run.dir), 0);  // on hosts that were out of reach when the last attempt ended
    agents_.watch(names_of(mesh.hosts), job, static_cast<double>(config_.checkpoint.grace_s));
    AttemptEnd end = run_attempt(one, agents_);
    if (end.started) fresh_ = false, before_ = 0;
    journal_.teardown(end.end.seconds,
                      end.end.left.empty() ? "all processes have ended" : fmt::format("{}", fmt::join(end.end.left, ", ")));
    for (const std::string& words : end.end.left) setup_.say("cannot be ended: " + words);
    if (end.end.silent.empty() && end.end.left.empty()) give_folder_back();
    return end;
  }

  // All processes of the attempt are known to be gone, so nobody holds the run folder: another host need not wait for its lease.
  void give_folder_back() const {
    std::error_code error;
    fs::remove(fs::path(config_.run.dir) / "run.lock", error);
  }

  void keep_evidence(const AttemptEnd& end) const { std::ofstream(folder_ / fmt::format("fault_{}.txt", attempts_)) << end.evidence; }

  // False: a signal came in the pause.
  bool follow(const Decision& d, const AttemptEnd& end) {
    ++restarts_;
    // A host that is gone is tried again before each start; only one that is slow has to be left out.
    if (!d.evict.empty() && end.failure.kind == FailureCause::straggler && living().size() > 1) evict(d.evict, end.failure.words);
    if (d.from != RestartFrom::newest) before_ = d.before;
    if (d.skip) {
      skips_ = d.skips;
      journal_.skip(*d.skip, d.words);
    }
    journal_.restart(d.pause_s, end.failure.saved, d.words);
    const int64_t saved = end.failure.saved;
    const std::string from = d.from != RestartFrom::newest ? fmt::format("a checkpoint before step {}", d.before)
                             : saved > 0                   ? fmt::format("the checkpoint of step {}", saved)
                                                           : "the beginning";
    setup_.say(fmt::format("restart {} of at most {} from {}{}{}", restarts_, config_.launch.restarts, from,
                           d.skip ? fmt::format(", without the batch of step {}", *d.skip) : "",
                           d.pause_s > 0 ? fmt::format(", in {:.0f} s", d.pause_s) : ""));
    for (const double limit = now_s() + d.pause_s; now_s() < limit;) {
      agents_.poll(0.1);
      if (signals_.asked() != 0) return false;
    }
    return signals_.asked() == 0;
  }

  LaunchEnd stopped(const Decision& d, const AttemptEnd& end) {
    journal_.stop(d.exit_code, end.failure.step, d.words);
    return {.exit_code = d.exit_code, .words = d.words, .restarts = restarts_};
  }

  LaunchEnd stopped_by_signal(int exit_code) {
    const int number = signals_.asked();
    const std::string words = fmt::format("{} ended it", signal_name(number));
    const int code = exit_code != 0 ? exit_code : 128 + number;
    journal_.stop(code, 0, words);
    return {.exit_code = code, .signal = number, .words = words, .restarts = restarts_};
  }

  const LaunchSetup& setup_;
  const Config& config_;
  std::atomic<bool> twice_ = false;
  EndSignals signals_;  // before the first that starts a thread, which else would be ended by them
  fs::path folder_;
  FolderLease lease_;
  LaunchJournal journal_;
  Agents agents_;
  std::map<std::string, std::string> absent_;
  std::map<std::string, double> gone_since_;  // hosts that do not answer
  std::set<std::string> evicted_;
  std::vector<Failure> history_;
  std::vector<int64_t> skips_;
  int64_t attempts_ = 0, restarts_ = 0, before_ = 0;
  bool fresh_;
  std::string mesh_words_;
};

}  // namespace

LaunchEnd launch(const LaunchSetup& setup) {
  if (const MeshChoice whole = choose_mesh(setup.config, setup.hosts, setup.hosts); !whole.possible()) throw UsageError(whole.words);
  return Launcher(setup).run();
}

}  // namespace hlat
