// Runs operations of one Comm in order, on a thread of its own, overlapped with the computation. All ranks of the group submit the
// same operations in the same order. The Comm belongs to that thread: its owner touches it only after wait_all().
// After the first operation that throws no other one runs; wait() for it or a later one rethrows its exception.
// Without peers (a group of one, a null group) there is no thread: submit runs the operation at once, with the same rules. Nor is there
// one where calls only put work on a stream (Overlap::on_stream): the stream is what overlaps with the computation.
// An operation on a device's tensors starts after the work that the device had been given when it was submitted; work given after
// wait() sees its results.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "comm/comm.h"

namespace hlat {

class CommQueue {
 public:
  explicit CommQueue(Comm& comm);
  // Runs what was submitted; while an exception passes it gives up instead, and the Comm with it (Comm::cancel).
  ~CommQueue();
  CommQueue(const CommQueue&) = delete;
  CommQueue& operator=(const CommQueue&) = delete;

  uint64_t submit(std::function<void(Comm&)> operation);  // returns a ticket, at once
  void wait(uint64_t ticket);                             // until this operation and all before it are done
  void wait_all();

  // Time inside operations, and callers' time inside wait (inline operations count as both): 1 - waited / busy is hidden. Waiting for
  // the device's own work counts as neither.
  double busy_s() const;
  double waited_s() const;

 private:
  struct Operation {
    std::function<void(Comm&)> run;
    uint64_t mark = 0;  // in the device's work
  };
  void run();  // the thread
  void execute(std::unique_lock<std::mutex>& lock, const Operation& operation);

  Comm& comm_;
  Overlap& overlap_;
  const bool peers_, threaded_;
  const int exceptions_;
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<Operation> operations_;
  uint64_t submitted_ = 0, finished_ = 0;
  uint64_t failed_ = 0;  // ticket of the first operation that threw, 0 for none
  std::exception_ptr error_;
  bool stopping_ = false;
  double busy_s_ = 0, waited_s_ = 0;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace hlat
