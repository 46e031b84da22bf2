#include "cli/train_end.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "base/exit_code.h"
#include "base/failure_word.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "cli/goodput_shown.h"
#include "cli/print.h"
#include "cli/train_summary.h"
#include "eval/sample_text.h"

namespace hlat {

namespace {

// The summary is recorded and shown before anything is written by the model. Collective; only rank 0 has a folder.
void tell_end(bool json, const Config& config, const TrainSetup& setup, const TrainSummary& summary) {
  RunAccount run;
  if (setup.folder != nullptr) {
    run = account(read_run_record(setup.folder->dir(), true));
    const std::string text = summary_text(config, summary) + goodput_text(run);
    setup.folder->log().info("{}", text);
    setup.folder->log().info("read\n{}", ledger_text(summary.ledger));
    if (!json) print_out(text);
  }
  std::vector<std::string> samples;
  std::exception_ptr failed;
  if (summary.ended_by == 0 && config.run.sample_lines > 0) try {
      if (setup.folder != nullptr) print_err("\nthe run is finished; the model writes samples\n");
      samples = sample_texts(setup.model.executor(), setup.data, config.run.sample_lines);
    } catch (const Error&) {
      failed = std::current_exception();
    }
  if (setup.folder != nullptr) {
    if (!samples.empty()) setup.folder->log().info("{}", samples_text(samples));
    nlohmann::ordered_json object = summary_json(config, summary, samples);
    object["goodput"] = goodput_json(run.goodput);
    print_out(json ? json_text(object, 2) + "\n" : samples_text(samples));
  }
  if (setup.folder != nullptr) setup.folder->finish();
  if (failed) std::rethrow_exception(failed);
}

// Throws what the end of a run is, unless it is finished. What was trained is recorded and shown by now.
void end_run(const TrainSummary& s, bool leads, RunGuard& guard) {
  const bool saved = s.saved_step == s.steps;
  if (s.ended_by == 0 && !s.save_problem.empty())
    fail<FaultError>("trained to step {}, but the last save failed: {}; {}", s.steps, s.save_problem,
                     s.saved_step ? fmt::format("the last checkpoint is that of step {}", *s.saved_step) : "there is no checkpoint");
  guard.over();
  if (leads)
    guard.ended(
        s.ended_by == 0 ? "finished" : fmt::format("{} ended it after step {}{}", signal_name(s.ended_by), s.steps, saved ? ", saved" : ""),
        s.ended_by == 0 ? kOk : exit_code_of_signal(s.ended_by, saved));
}

// A save that is under way ends by itself, unless its disk hangs: patience is for the time without progress.
bool hangs(const Saver* saver, double patience_s) {
  double limit = now_s() + patience_s;
  uint64_t progress = 0;
  while (saver != nullptr && saver->busy()) {
    if (const uint64_t now = saver->progress(); std::exchange(progress, now) != now) limit = now_s() + patience_s;
    if (now_s() > limit) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace

RunEnd tell_finished(const Config& config, const StartPoint& from, bool leads) {
  if (from.kind != StartKind::continued)
    fail<UsageError>("checkpoint.resume_from = {} is a checkpoint of step {}, and train.steps is {}: give more train.steps",
                     config.checkpoint.resume_from, from.step(), config.train.steps);
  if (leads)
    print_err(fmt::format("step {} of {} is done (run folder {}): to continue give more train.steps{}, or --fresh to start anew\n",
                          from.step(), config.train.steps, config.run.dir,
                          config.optim.schedule_steps > 0 ? "" : ", and with them optim.schedule_steps"));
  return {};
}

RunEnd train_to_end(bool json, const Config& config, TrainSetup& setup, TrainState& state, const Saver* saver, RunGuard& guard) {
  double patience_s = static_cast<double>(config.parallel.timeout_s);
  try {
    const TrainSummary summary = train(config, setup, state, guard.step());
    if (!summary.save_problem.empty()) patience_s = 0;  // it has been waited for
    tell_end(json, config, setup, summary);
    end_run(summary, setup.folder != nullptr, guard);
    const RunEnd end{.signal = summary.ended_by, .saved = summary.saved_step == summary.steps};
    if (hangs(saver, patience_s))
      guard.leave_save_behind("a save has not ended", end.signal != 0 ? exit_code_of_signal(end.signal, end.saved) : kFault);
    return end;
  } catch (const std::exception& e) {
    if (hangs(saver, patience_s)) {
      guard.flight().ended(exit_code_of(e), reason_of(e));
      guard.leave_save_behind(e.what(), exit_code_of(e));
    }
    throw;
  }
}

}  // namespace hlat
