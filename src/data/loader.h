// Rows ahead of time: worker threads read the lanes of one rank into a bounded queue, each with its own readers, while the step
// computes. A lane is read by one worker at a time and in order, so what a row holds does not depend on the workers. The position is
// that of the rows that were taken, whatever lies ready behind them. A worker's error comes out where its row is due; rows before it
// are served. The destructor ends the workers in any state, after the row each is reading.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/part.h"
#include "data/batch.h"
#include "data/lanes.h"

namespace hlat {

struct LoaderOptions {
  int workers = 1;
  int64_t prefetch = 2;  // rows of each lane that may lie ready
};

class Loader {
 public:
  // Serves the `own` of `lanes`, from where they stand.
  Loader(Lanes lanes, Part own, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Rows of the batch are the next ones of lanes [first, first + batch.rows) of the served, counted from 0; waits for those that are not
  // ready. Returns the mean surprisal of the targets where Lanes::read_row knows it. For one thread.
  std::optional<double> fill(int64_t first, Batch& batch);

  std::vector<LaneState> states() const;         // of the served lanes, after the rows that fill() has given
  std::vector<LaneState> states_before() const;  // the same, before the last row of each
  uint64_t rows_read() const;                    // by the workers, those that lie ready included

  static size_t row_bytes(int64_t lanes, int64_t seq_len, const LoaderOptions& options);  // of the queue

 private:
  struct ReadyRow {
    std::optional<double> surprisal;  // sum over its targets
    LaneState after;
  };
  struct Queue {
    std::vector<ReadyRow> ring;
    uint64_t produced = 0, consumed = 0;
    bool busy = false;  // a worker is on it
    std::exception_ptr error;
    LaneState taken;   // after the last row that was consumed
    LaneState before;  // and before it
  };
  void work(Readers& readers);
  Queue* next_job();  // under the lock; null when there is nothing to do
  std::optional<double> take(Queue& q, int64_t row, Batch& batch);
  int32_t* row(const Queue& q, uint64_t number);
  void stop();

  Lanes lanes_;
  Part own_;
  uint64_t prefetch_;
  std::vector<Queue> queues_;  // by served lane
  std::vector<int32_t> rows_;  // (lanes, prefetch, T + 1)
  mutable std::mutex mutex_;
  std::condition_variable work_, ready_;
  bool stopping_ = false;
  std::vector<Readers> readers_;  // by worker
  std::vector<std::thread> threads_;
};

}  // namespace hlat
