#include "supervise/attempt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/exit_code.h"
#include "base/machine.h"
#include "base/signals.h"
#include "supervise/evidence.h"
#include "supervise/rank_ends.h"

namespace hlat {

namespace {

constexpr double kLook = 0.1;        // seconds between looks
constexpr double kSettle = 0.3;      // for other ranks to say why they ended, before one is named
constexpr double kAfterStarter = 2;  // for reports to come when mpirun has ended
constexpr double kStarterEnd = 3;    // for mpirun to end when its ranks are gone
constexpr double kEvidence = 2;      // to collect what rings hold
constexpr double kAfterGrace = 5;    // beyond checkpoint.grace_s, in which ranks end themselves
constexpr double kLeaseLook = 1;     // between looks whether the run is still this launcher's
constexpr int kNotFound = 127;       // exit code of a program that cannot be started

class RunningAttempt {
 public:
  RunningAttempt(const AttemptSetup& setup, Agents& agents)
      : setup_(setup),
        agents_(agents),
        hangs_(setup.config.launch, setup.ranks),
        stragglers_(setup.config.launch, setup.ranks),
        ends_(setup.ranks),
        starter_words_(start_words(setup.command, setup.starter, setup.config.launch, geteuid() == 0)),
        starter_(starter_words_, {.variables = setup.command.variables, .take_errors = true}) {
    end_.progressed_at = wall_time();
  }

  AttemptEnd run() {
    std::optional<Failure> failure;
    while (!failure) {
      agents_.poll(kLook);
      setup_.show(output_.pass(starter_.read_errors()));
      views_ = agents_.views();
      take_progress();
      ends_.look(views_, now_s());
      pass_signal();
      if (now_s() - checked_ > kLeaseLook) setup_.check(), checked_ = now_s();
      failure = judge();
    }
    end_.failure = *failure;
    end_.failure.asked = asked_ != 0;
    end_.failure.saved = saved_;
    end_.found_at = wall_time();
    if (failure->kind != FailureCause::finished) collect_evidence();
    if (failure->kind != FailureCause::finished && asked_ == 0) tell_fault();
    tear_down();
    return std::move(end_);
  }

 private:
  void take_progress() {
    uint64_t progress = 0;
    double silent = 1e9;
    for (const RankView& v : views_) {
      progress += v.progress;
      if (!v.gone()) silent = std::min(silent, v.silent_s);
      if (!v.steps.empty()) end_.reached = std::max(end_.reached, v.steps.back().step);
      saved_ = std::max(saved_, v.saved_step);
      if (v.rank == 0) end_.rank_0 = LockOwner{.host = v.host, .pid = v.pid};
      end_.started = end_.started || v.steps_done > 0 || v.phase != FlightPhase::start;
    }
    if (progress != progress_) end_.progressed_at = wall_time() - (silent < 1e8 ? silent : 0);
    progress_ = progress;
  }

  // The first signal goes to the ranks, which save and end; the second ends everything.
  void pass_signal() {
    if (const int number = setup_.asked(); number != 0 && asked_ == 0) {
      asked_ = number;
      asked_at_ = now_s();
      setup_.say(fmt::format("{}: the ranks are asked to save and end; a second signal ends them at once", signal_name(number)));
      agents_.signal_ranks(number);
    }
  }

  std::optional<Failure> judge() {
    if (const auto end = ended()) return end;
    if (asked_ != 0) {
      const double limit = static_cast<double>(setup_.config.checkpoint.grace_s) + kAfterGrace;
      if (setup_.asked_twice() || now_s() - asked_at_ > limit)
        return Failure{.kind = FailureCause::dead_rank, .exit_code = kEndedBySignal + asked_, .words = "the ranks had not ended in time"};
      return std::nullopt;
    }
    if (const auto lost = agents_.lost(); !lost.empty()) {
      Failure f = at_large(FailureCause::dead_host);
      f.host = lost.front();
      f.words = fmt::format("the agent on {} is gone", fmt::join(lost, ", "));
      return f;
    }
    if (const auto hang = hung()) return hang;
    return slow();
  }

  // All ranks have ended, or one has failed, or what started them has.
  std::optional<Failure> ended() {
    if (ends_.all_finished()) return Failure{.kind = FailureCause::finished, .step = end_.reached};
    const bool settled = ends_.any_failed() && now_s() - ends_.first_failure() > kSettle;
    // Whoever was asked to end saves first, and the others with it.
    if (settled && (asked_ == 0 || ends_.all_ended())) return judged(ends_.cause());
    if (starter_.running()) return std::nullopt;
    if (starter_ended_ == 0) starter_ended_ = now_s();
    if (now_s() - starter_ended_ < kAfterStarter) return std::nullopt;
    if (ends_.any_failed()) return judged(ends_.cause());
    return starter_failed(starter_.status().value_or(1));
  }

  Failure starter_failed(int code) const {
    const std::string name = setup_.starter == Starter::direct ? "hlat train" : starter_words_.front();
    const std::string said = last_words(output_.kept());
    Failure f = at_large(code == kUsage || code == kNotFound ? FailureCause::bad_input : FailureCause::error);
    f.exit_code = code == kNotFound ? kUsage : code;
    f.words = code == kNotFound && said.empty()
                  ? fmt::format("{} cannot be started: there is no such program", name)
                  : fmt::format("{} ended with code {} and no word from the ranks{}", name, code, said.empty() ? "" : ": " + said);
    return f;
  }

  Failure judged(Failure f) const {
    if (f.kind == FailureCause::dead_rank && f.exit_code == 0 && agents_.oom_kills(agents_.host_of(f.rank)) > 0) {
      f.kind = FailureCause::out_of_memory;
      f.words += "; the system has ended a process there for lack of memory";
    }
    return f;
  }

  Failure at_large(FailureCause kind) const {
    Failure f{.kind = kind};
    for (const RankView& v : views_) f.step = std::max(f.step, v.step);
    return f;
  }

  RankViews by_rank() const {
    RankViews out(static_cast<size_t>(setup_.ranks));
    for (const RankView& v : views_)
      if (v.rank >= 0 && v.rank < setup_.ranks) out[static_cast<size_t>(v.rank)] = v;
    return out;
  }

  std::optional<Failure> hung() {
    const auto hang = hangs_.look(by_rank(), now_s(), agents_.take_late_s());
    if (!hang) return std::nullopt;
    std::string cause = hang->cause;
    if (const std::string who = fmt::format("rank {} ({}) ", hang->rank, hang->host); cause.starts_with(who)) cause.erase(0, who.size());
    return Failure{.kind = hang->phase == FlightPhase::start ? FailureCause::start_hang : FailureCause::hang,
                   .step = hang->step,
                   .rank = hang->rank,
                   .host = hang->host,
                   .words = cause + (hang->waiting.empty() ? "" : "; " + hang->waiting)};
  }

  std::optional<Failure> slow() {
    for (const Straggler& s : stragglers_.look(by_rank())) {
      const std::string words = fmt::format("rank {} on {} computes {:.2f} times as long as its peers (steps {} to {})", s.rank, s.host,
                                            s.factor, s.first_step, s.last_step);
      setup_.journal.straggler(s.rank, s.host, s.last_step, words);
      setup_.say(words);
      if (!setup_.config.launch.evict) continue;
      const std::string host = agents_.host_of(s.rank);
      if (setup_.can_spare(host))
        return Failure{.kind = FailureCause::straggler, .step = s.last_step, .rank = s.rank, .host = host, .words = words};
      setup_.say(fmt::format("{} stays: the other hosts are not enough (launch.evict)", host));
    }
    return std::nullopt;
  }

  void collect_evidence() {
    end_.evidence = fmt::format("{}\n\n{}\n{}", describe(end_.failure), evidence_text(by_rank()), agents_.evidence(kEvidence));
  }

  void tell_fault() {
    const Failure& f = end_.failure;
    setup_.journal.fault({.kind = std::string(name_of(f.kind)),
                          .rank = f.rank,
                          .host = f.host,
                          .step = f.step,
                          .until = f.until,
                          .reason = f.words,
                          .progressed_at = end_.progressed_at,
                          .exit_code = f.exit_code,
                          .saved = f.saved});
    setup_.say(fmt::format("{}; found {:.1f} s after the last progress", describe(f), std::max(0.0, end_.found_at - end_.progressed_at)));
  }

  void tear_down() {
    if (end_.failure.kind == FailureCause::finished) wait_for_starter(kStarterEnd);
    end_.end = agents_.end(setup_.run, {.hurry = setup_.asked_twice});  // with what an agent that is gone could not end
    wait_for_starter(kStarterEnd);
    starter_.end();
    setup_.show(output_.pass(starter_.read_errors()));
    end_.evidence += "\noutput of what started the ranks, the end of it\n" + output_.kept();
  }

  void wait_for_starter(double limit_s) {
    for (const double limit = now_s() + limit_s; starter_.running() && now_s() < limit;) {
      agents_.poll(0.02);
      setup_.show(output_.pass(starter_.read_errors()));
    }
  }

  const AttemptSetup& setup_;
  Agents& agents_;
  HangWatch hangs_;
  StragglerWatch stragglers_;
  RankEnds ends_;
  StartOutput output_;
  std::vector<std::string> starter_words_;
  Child starter_;
  std::vector<RankView> views_;
  AttemptEnd end_;
  uint64_t progress_ = 0;
  int64_t saved_ = 0;
  int asked_ = 0;
  double asked_at_ = 0, starter_ended_ = 0, checked_ = now_s();
};

}  // namespace

AttemptEnd run_attempt(const AttemptSetup& setup, Agents& agents) { return RunningAttempt(setup, agents).run(); }

}  // namespace hlat
