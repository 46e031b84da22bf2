#include "supervise/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/machine.h"
#include "base/signals.h"
#include "flight/flight_ring.h"
#include "record/folder_lease.h"
#include "record/progress.h"
#include "supervise/attempt.h"
#include "supervise/host_pool.h"
#include "supervise/host_processes.h"
#include "supervise/launch_checks.h"
#include "supervise/launch_history.h"
#include "supervise/run_lock.h"
#include "supervise/run_places.h"

namespace hlat {

namespace fs = std::filesystem;

namespace {

constexpr double kWatched = 10;       // seconds for agents to say that they watch
constexpr double kFolderMargin = 60;  // for ranks that are out of reach to end: their agent notices, asks, and ends them
constexpr int kLauncherLetters = 8;

std::vector<std::string> names_of(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& h : hosts) names.push_back(h.name);
  return names;
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
        past_(launch_history(read_events(config_.run.dir).events, setup.fresh)),
        name_(random_word(kLauncherLetters)),
        run_(run_prefix(config_.run.dir)),
        agents_({.remote = split_words(config_.launch.remote), .by_srun = setup.in_slurm_job}, setup.version),
        pool_(config_, setup.hosts, run_, agents_, setup.say),
        checks_(setup, folder_, job_folder(config_.run.dir, name_, 0), agents_, journal_, [this] { return asked(); }),
        fresh_(setup.fresh) {
    for (const std::string& host : past_.evicted) pool_.leave_out(host);
  }

  // Whatever ends this, nothing of the run goes on without it.
  LaunchEnd run() try { return go_on(); } catch (const std::exception& e) {
    if (!job_.empty()) agents_.end(job_, {.hurry = [this] { return twice_.load(); }});
    if (owns_run()) journal_.stop(exit_code_of(e), 0, e.what());
    throw;
  }

 private:
  LaunchEnd go_on() {
    journal_.launch(lease_.taken_over().empty() ? "started" : "started again: " + lease_.taken_over(), fresh_);
    if (past_.pending) take(answer());
    pool_.meet();
    clear_leftovers();
    for (;;) {
      const auto found = pool_.await_mesh([this] { return asked(); });
      if (!found) return stopped_by_signal(0, false);
      const MeshChoice& mesh = found->mesh;
      if (found->waited_s > 0) journal_.wait(found->waited_s, mesh.words);
      if (checks() && leave_out(checks_.bad_hosts(mesh.hosts))) continue;
      if (checks() && !checks_.check_model(mesh.hosts)) continue;
      if (!prepare(mesh)) continue;
      if (asked()) return stopped_by_signal(0, false);
      const AttemptEnd end = attempt(mesh);
      if (end.failure.kind == FailureCause::finished) {
        journal_.finished(end.reached);
        return {.restarts = past_.restarts};
      }
      keep_evidence(end);
      if (end.failure.asked) return stopped_by_signal(end.failure.exit_code, end.started);
      if (shrank_too_far(mesh, end)) continue;
      past_.failures.push_back(end.failure);
      past_.skips_before = past_.skips;
      const Decision decision = answer();
      if (!decision.restart) return stopped(decision, end);
      if (!follow(decision, end)) return stopped_by_signal(0, false);
    }
  }

  bool asked() const { return signals_.asked() != 0; }

  bool owns_run() const try {
    lease_.check();
    return true;
  } catch (const Error&) {
    return false;
  }

  // Ranks of an earlier launcher that is gone: their agents have asked them to save and end.
  void clear_leftovers() {
    const JobEnd end = agents_.end(run_, {.wait_s = static_cast<double>(config_.checkpoint.grace_s), .hurry = [this] { return asked(); }});
    if (end.seconds > 1) setup_.say(fmt::format("waited {:.0f} s for the ranks of an earlier launcher to end", end.seconds));
    pool_.take_stuck(end);
    folder_unsure_ = past_.attempts > 0 && pool_.living().size() < setup_.hosts.size();
  }

  bool checks() const { return !asked() && (config_.launch.check == "restarts" || (config_.launch.check == "start" && !tried_)); }

  // Without a host that can be left out the ranks are started all the same: they fail, or they do not.
  bool leave_out(const std::vector<std::string>& bad) {
    bool any = false;
    for (const std::string& host : bad) any = evict(host, "hlat check found it bad") || any;
    return any;
  }

  bool evict(const std::string& host, const std::string& why) {
    if (pool_.is_left_out(host)) return false;
    if (!pool_.can_spare(host)) {
      setup_.say(fmt::format("host {} is used all the same, the others are not enough: {}", host, why));
      return false;
    }
    pool_.leave_out(host);
    journal_.evict(host, why);
    setup_.say(fmt::format("host {} is left out: {}", host, why));
    return true;
  }

  // Nothing of earlier attempts is left, and agents watch for the next one. False: hosts have to be chosen again.
  bool prepare(const MeshChoice& mesh) {
    lease_.check();
    const std::vector<std::string> names = names_of(mesh.hosts);
    const auto all_live = [&] {
      const std::vector<std::string> living = names_of(pool_.living());
      return std::ranges::all_of(names, [&](const std::string& name) { return std::ranges::count(living, name) > 0; });
    };
    pool_.take_stuck(agents_.end(run_, {.hurry = [this] { return asked(); }}));
    if (!all_live()) return false;
    await_folder();
    if (asked()) return true;
    job_ = job_folder(config_.run.dir, name_, past_.attempts + 1);
    agents_.watch(names, job_, static_cast<double>(config_.checkpoint.grace_s), kWatched);
    return all_live();
  }

  // Ranks on a host that is out of reach may still hold the folder: until its agent has ended them, or their lease is over.
  void await_folder() {
    if (!folder_unsure_) return;
    const double begin = now_s();
    const double limit = begin + static_cast<double>(config_.checkpoint.grace_s + config_.run.lease_s) + kFolderMargin;
    for (const fs::path& folder : locked_folders(config_)) {
      LockWatch lock(folder);
      for (bool told = false; !lock.is_free(now_s()); told = true) {
        if (asked()) return;
        if (now_s() > limit) break;
        if (!told) setup_.say(fmt::format("waiting for a rank that is out of reach to give {} back", folder.string()));
        agents_.poll(0.2);
      }
      if (lock.is_free(now_s())) lock.remove();
    }
    folder_unsure_ = false;
    if (const double waited = now_s() - begin; waited > 1) journal_.wait(waited, "a rank that is out of reach held the run folder");
  }

  std::vector<std::string> train_words() const {
    std::vector<std::string> words = setup_.train;
    if (fresh_) words.emplace_back("--fresh");
    if (before_ > 0) words.insert(words.end(), {"--before", std::to_string(before_)});
    if (before_ > 0 && unverified_) words.emplace_back("--unverified");
    if (!past_.skips.empty()) words.insert(words.end(), {"--skip", fmt::format("{}", fmt::join(past_.skips, ","))});
    return words;
  }

  AttemptEnd attempt(const MeshChoice& mesh) {
    ++past_.attempts;
    std::map<std::string, std::string> variables{{kFlightVariable, job_}, {"HLAT_ATTEMPT", std::to_string(past_.attempts)}};
    if (setup_.columns > 0) variables[kColumnsVariable] = std::to_string(setup_.columns);
    const Starter starter = starter_of(config_.launch, mesh.hosts, setup_.in_slurm_job);
    AttemptSetup one{.config = config_,
                     .command = rank_command(train_words(), mesh.hosts, starter, std::move(variables), config_.checkpoint.grace_s, folder_),
                     .starter = starter,
                     .run = run_,
                     .ranks = mesh.ranks(),
                     .asked = [this] { return signals_.asked(); },
                     .asked_twice = [this] { return twice_.load(); },
                     .can_spare = [this](const std::string& host) { return pool_.can_spare(host); },
                     .check = [this] { lease_.check(); },
                     .show = setup_.show,
                     .say = setup_.say,
                     .journal = journal_};
    journal_.attempt({.number = past_.attempts,
                      .ranks = mesh.ranks(),
                      .mesh = fmt::format("tp {}, pp {}, dp {}", mesh.tp, mesh.pp, mesh.dp),
                      .hosts = names_of(mesh.hosts),
                      .from = fresh_ ? 0 : newest_checkpoint(config_, before_)});
    if (mesh.words != mesh_words_) setup_.say(mesh.words);
    mesh_words_ = mesh.words;
    tried_ = true;
    AttemptEnd end = run_attempt(one, agents_);
    job_.clear();
    if (end.started) fresh_ = false, before_ = 0, past_.started = true;
    journal_.teardown(end.end.seconds,
                      end.end.left.empty() ? "all processes have ended" : fmt::format("{}", fmt::join(end.end.left, ", ")));
    pool_.take_stuck(end.end);
    settle_folder(end, mesh.hosts.front().name);
    return end;
  }

  // Where the first rank is known to be gone nobody holds the folders, and other hosts need not wait for its lease.
  void settle_folder(const AttemptEnd& end, const std::string& first_host) {
    folder_unsure_ = std::ranges::count(end.end.silent, first_host) > 0 || std::ranges::count(end.end.stuck, first_host) > 0;
    if (folder_unsure_ || !end.rank_0) return;
    for (const fs::path& folder : locked_folders(config_)) remove_lock_of(folder, *end.rank_0);
  }

  std::string evidence_file() const { return (folder_ / fmt::format("fault_{}.txt", past_.attempts)).string(); }
  void keep_evidence(const AttemptEnd& end) const { std::ofstream(evidence_file()) << end.evidence; }

  // Fewer ranks than the run is to have may not fit memory, which they say as bad input before they train: then it waits for hosts.
  bool shrank_too_far(const MeshChoice& mesh, const AttemptEnd& end) {
    if (end.failure.kind != FailureCause::bad_input || end.failure.exit_code != kUsage || end.started) return false;
    if (!past_.started || pool_.is_complete(mesh)) return false;
    pool_.raise_least(mesh.dp + 1);
    setup_.say(fmt::format("dp {} does not work, the run waits for more hosts: {}", mesh.dp, end.failure.words));
    return true;
  }

  // What follows the latest failure. Going back to before all checkpoints that there are is no way to go on.
  Decision answer() const {
    Decision d = decide(past_.failures, past_.skips_before, config_.launch, config_.loss);
    const int64_t newest = newest_checkpoint(config_, 0);
    if (!d.restart || d.from == RestartFrom::newest || newest == 0) return d;
    const bool verified = d.from == RestartFrom::verified_before;
    if (newest_checkpoint(config_, d.before, verified) > 0) return d;
    return {
        .exit_code = exit_code_of(past_.failures.back()),
        .words = fmt::format("there is no {}checkpoint of a step before {} to go back to (checkpoint.keep); the same command goes on from "
                             "the newest, of step {}: {}",
                             verified ? "verified " : "", d.before, newest, d.words)};
  }

  // What a decision changes for the attempts to come.
  void take(const Decision& d) {
    if (!d.restart) return;
    if (d.from != RestartFrom::newest) before_ = d.before, unverified_ = d.from == RestartFrom::before;
    if (!d.skip) return;
    std::vector<int64_t> skips = merged_steps(past_.skips, d.skip->steps());
    if (skips != past_.skips) journal_.skip(d.skip->first, d.skip->last, d.words);
    past_.skips = std::move(skips);
  }

  // False: a signal came in the pause.
  bool follow(const Decision& d, const AttemptEnd& end) {
    ++past_.restarts;
    // A host that is gone is tried again before each start; only one that is slow has to be left out.
    if (!d.evict.empty() && end.failure.kind == FailureCause::straggler) evict(d.evict, end.failure.words);
    take(d);
    const int64_t newest = fresh_ ? 0 : newest_checkpoint(config_, before_);
    journal_.restart(d.pause_s, newest, d.words);
    const std::string from = before_ > 0  ? fmt::format("a checkpoint before step {}", before_)
                             : newest > 0 ? fmt::format("the checkpoint of step {}", newest)
                                          : "the beginning";
    setup_.say(fmt::format("restart {} of at most {} from {}{}{}; what ranks were doing: {}", past_.restarts, config_.launch.restarts, from,
                           d.skip ? fmt::format(", without {}", batches_text(*d.skip)) : "",
                           d.pause_s > 0 ? fmt::format(", in {:.0f} s", d.pause_s) : "", evidence_file()));
    for (const double limit = now_s() + d.pause_s; now_s() < limit && !asked();) agents_.poll(0.1);
    return !asked();
  }

  LaunchEnd stopped(const Decision& d, const AttemptEnd& end) {
    journal_.stop(d.exit_code, end.failure.step, d.words);
    return {.exit_code = d.exit_code,
            .words = fmt::format("{}; what ranks were doing: {}", d.words, evidence_file()),
            .restarts = past_.restarts};
  }

  LaunchEnd stopped_by_signal(int ranks_code, bool trained) {
    const int number = signals_.asked();
    const std::string words = fmt::format("{} ended it", signal_name(number));
    const int code = exit_code_of_stop(number, ranks_code, trained);
    journal_.stop(code, 0, words, true);
    return {.exit_code = code, .signal = number, .words = words, .restarts = past_.restarts};
  }

  const LaunchSetup& setup_;
  const Config& config_;
  std::atomic<bool> twice_ = false;
  EndSignals signals_;  // before the first that starts a thread, which else would be ended by them
  fs::path folder_;
  FolderLease lease_;
  LaunchJournal journal_;
  LaunchHistory past_;  // with what this launcher adds
  std::string name_;    // of this launcher, in those of its jobs
  std::string run_, job_;
  Agents agents_;
  HostPool pool_;
  LaunchChecks checks_;
  int64_t before_ = 0;          // the next start goes back to a checkpoint of an earlier step; 0: to the newest
  bool unverified_ = false;     // one whose replicas were not compared will do
  bool fresh_, tried_ = false;  // tried: this launcher has started ranks
  bool folder_unsure_ = false;  // a rank that is out of reach may hold the run folder
  std::string mesh_words_;
};

}  // namespace

LaunchEnd launch(const LaunchSetup& setup) {
  if (const MeshChoice whole = choose_mesh(setup.config, setup.hosts, setup.hosts); !whole.possible()) throw UsageError(whole.words);
  return Launcher(setup).run();
}

}  // namespace hlat
