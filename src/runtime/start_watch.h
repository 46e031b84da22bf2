// A time limit for each phase of the start-up, also for calls that no time limit of their own can end: MPI_Init, the splits of groups,
// NCCL's connections, a scan of the data, a call that blocks while it connects. A thread watches. When a phase outlasts the limit it finds
// out who is missing (the kernel's list of processes on this host; once MPI runs, a roll call that the watches of living ranks answer) and
// hands the words to the owner, who ends the process. All ranks go through the same phases; the lowest of those that run speaks first.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "flight/flight_recorder.h"
#include "runtime/launch.h"

namespace hlat {

class Session;

class StartWatch {
 public:
  using TooLong = std::function<void(const std::string& words)>;  // from the watch's thread
  // flight: phases are recorded there too; may be null, and must outlive this.
  StartWatch(const Launch& launch, double limit_s, TooLong too_long, FlightRecorder* flight = nullptr);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  void set_limit(double limit_s);
  void begin(const std::string& phase);  // the one before is over
  // Called at the beginning of each phase from now on, by who begins it.
  void on_begin(std::function<void(const std::string& phase)> begun) { begun_ = std::move(begun); }
  std::string phase() const;   // the one under way; empty: start-up is over
  void use(Session& session);  // MPI runs; the session must live until finish()
  void finish();               // the start-up is over

 private:
  void run();
  struct Overdue {  // a copy: the start-up may go on meanwhile
    std::vector<std::string> phases;
    double limit_s;
    Session* session;
  };
  std::string describe(const Overdue& overdue) const;
  std::string roll_call(const Overdue& overdue) const;

  const Launch launch_;
  const TooLong too_long_;
  FlightRecorder* const flight_;
  std::function<void(const std::string&)> begun_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  double limit_s_, since_;
  std::vector<std::string> phases_;  // the last is under way
  Session* session_ = nullptr;
  bool finished_ = false;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace hlat
