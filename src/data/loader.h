// Rows ahead of time: worker threads read the lanes of one rank into a bounded queue, each with its own readers, while the step
// computes. A lane is read by one worker at a time and in order, so what a row holds does not depend on the workers. The position is
// that of the rows that were taken, whatever lies ready behind them. A worker's error comes out where its row is due; rows before it
// are served. The destructor ends the workers in any state, after the row each is reading.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/lanes.h"

namespace hlat {

struct LoaderOptions {
  int workers = 1;
  int64_t prefetch = 2;  // rows of each lane that may lie ready
};

class Loader {
 public:
  // Serves lanes [first, first + count) of `lanes`, from where they stand.
  Loader(Lanes lanes, int64_t first, int64_t count, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next row of each of lanes [first, first + count) of the global batch; waits for it where it is not ready. Returns the mean
  // surprisal of the targets as Lanes::read_row means it. For one thread.
  double fill(int64_t first, int64_t count, int32_t* inputs /* (count, T) */, int32_t* targets /* (count, T) */);

  int64_t first_lane() const { return first_; }
  std::vector<LaneState> states() const;  // of the served lanes, after the rows that fill() has given
  double worker_s() const;                // time all workers spent on reading

  static size_t row_bytes(int64_t lanes, int64_t seq_len, const LoaderOptions& options);  // of the queue

 private:
  struct Slot {
    double surprisal = 0;
    LaneState after;
  };
  struct Queue {
    std::vector<Slot> ring;
    uint64_t produced = 0, consumed = 0;
    bool busy = false;  // a worker is on it
    std::exception_ptr error;
    LaneState taken;  // after the last row that was consumed
  };
  void work(Readers& readers);
  Queue* next_job();  // under the lock; null when there is nothing to do
  double take(Queue& q, int32_t* inputs, int32_t* targets);
  int32_t* row(const Queue& q, uint64_t number);
  void stop();

  Lanes lanes_;
  int64_t first_;
  uint64_t prefetch_;
  std::vector<Queue> queues_;  // by lane, from first_
  std::vector<int32_t> rows_;  // (lanes, prefetch, T + 1)
  mutable std::mutex mutex_;
  std::condition_variable work_, ready_;
  bool stopping_ = false;
  double worker_s_ = 0;
  std::vector<Readers> readers_;  // by worker
  std::vector<std::thread> threads_;
};

}  // namespace hlat
