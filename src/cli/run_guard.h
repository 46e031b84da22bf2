// What can end a run from outside the thread that trains: signals, a start-up that takes too long, a peer that died. Each is told on
// stderr, in the run folder's log.txt and in events.jsonl, as is how the run ended by itself.
//
//   first signal    before the first step: ends at once. Later: all ranks end after the step under way, as end_signal() has them agree
//   second signal   ends at once, as does the end of checkpoint.grace_s, where the run saves
//   agent gone      of hlat launch on this host, where one watched: ends at once; nobody would end this rank later
//   SIGTERM while a rank of this host is gone: the launcher ends the job because of it; the lowest rank that lives records who is missing
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/machine.h"
#include "base/signals.h"
#include "config/config.h"
#include "flight/flight_recorder.h"
#include "record/goodput.h"
#include "record/run_folder.h"
#include "record/run_journal.h"
#include "runtime/job_processes.h"
#include "runtime/session.h"
#include "runtime/start_watch.h"
#include "train/loss_event.h"
#include "train/run_saves.h"

namespace hlat {

class RunGuard {
 public:
  // Before any other thread is started. Until the config is known the start-up has HLAT_START_TIMEOUT_S seconds, else 3600, for a phase.
  explicit RunGuard(const Launch& launch);
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

  StartWatch& start() { return *start_; }
  FlightRecorder& flight() { return flight_; }
  const FlightRecorder& flight() const { return flight_; }
  void configure(const Config& config);
  void meet(Session& session);  // until part() or the end of the process
  void part();
  // Rank 0: the folder is kept here, and the run recorded in it from now on. anew: it does not go on with one that was there.
  RunFolder& open(std::unique_ptr<RunFolder> folder, bool anew);
  // Rank 0, just before the first step: it goes on behind a step, of so many, and has spent load_s seconds with loading. Returns what the
  // run's goodput is counted with from here on; none: it was never restarted, and nobody watches it.
  std::optional<LiveGoodput> ready(int64_t behind, int64_t total, double load_s);
  void hold(std::unique_ptr<FolderLease> lease);  // of another folder, given back with the run's own
  void join(uint64_t token);                      // other ranks; see RunJournal

  // Once after each step, or where none is left, as TrainSetup wants it. The start-up ends with the first call.
  int end_signal();
  int64_t& step() { return step_; }                      // under way; 0: before the first
  void tell_save(const SaveNews& news);                  // rank 0
  void tell_loss(const LossEvent& event);                // rank 0
  void note(const std::string& text);                    // any rank, from any thread: a line of log.txt, once there is one
  void over() { over_ = true; }                          // every rank: nothing is left that checkpoint.grace_s has to end
  void ended(const std::string& reason, int exit_code);  // records how, and gives the folder back
  void ended(const std::string& reason, int exit_code, const std::string& flight_reason);
  // Ends the process as it is, with a save that its disk does not let end.
  [[noreturn]] void leave_save_behind(const std::string& reason, int exit_code);
  // Records a failure of this rank. Returns who of this host is gone or stopped, where that may be the cause: "; on this host rank 2 is
  // gone".
  std::string failed(const std::exception& e, int exit_code);

 private:
  int64_t now_at() { return std::atomic_ref(step_).load(); }
  void answer(const EndSignals::Signal& signal);
  void start_grace(int signal);
  void start_took_too_long(const std::string& words);
  [[noreturn]] void end_now(const std::string& reason, int exit_code, bool speaks);
  Absent absent() const;
  void watch_agent(const std::stop_token& stop);

  const Launch launch_;
  const double begun_ = now_s();
  FlightRecorder flight_;
  Config config_;
  int64_t step_ = 0;
  std::atomic<int64_t> saved_step_ = 0;
  std::atomic<bool> over_ = false;  // it ends by itself, or how it ended is recorded
  mutable std::mutex mutex_;        // of the pointers below
  Session* session_ = nullptr;
  std::unique_ptr<RunFolder> folder_;
  std::unique_ptr<FolderLease> more_;
  std::optional<RunJournal> journal_;
  std::optional<EndSignals> signals_;
  std::optional<StartWatch> start_;
  std::jthread agent_watch_;  // where an agent watches
};

}  // namespace hlat
