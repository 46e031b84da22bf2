// Signals that ask a process to end (SIGINT, SIGTERM, SIGHUP, SIGUSR1), taken by a thread of their own, so that the answer may log, lock
// and wait. They are blocked in the thread that makes this and in all that are started later. A signal that was ignored when the process
// started (nohup, a shell's background job) stays ignored.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/error.h"

namespace hlat {

// The run ended early because a signal asked for it; all is recorded.
class Interrupted : public Error {
 public:
  Interrupted(int signal_number, const std::string& text, bool saved_all = false) : Error(text), signal(signal_number), saved(saved_all) {}
  int signal;
  bool saved;  // with all that a restart needs
};

std::string signal_name(int signal);  // "SIGTERM"

class EndSignals {
 public:
  struct Signal {
    int number = 0;
    int sender = 0;     // process id; 0: the kernel, as for Ctrl-C
    bool first = true;  // no other came before
  };
  // Launchers may send one and the same request twice, through another process and directly: SIGTERM or SIGUSR1 that follows the same
  // signal, the first, within this time is not a second one.
  static constexpr std::chrono::seconds kRepeated{2};

  // An answer that blocks is left behind: what it touches then has to live as long as the process.
  explicit EndSignals(std::function<void(const Signal&)> answer);
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  int asked() const { return asked_; }  // the first signal, once it is answered or its answer has had its time; 0: none

 private:
  void run();

  std::function<void(const Signal&)> answer_;
  std::atomic<int> asked_ = 0;
  int signals_ = -1, stop_ = -1;  // file descriptors: signalfd, eventfd
  std::thread thread_;
};

}  // namespace hlat
