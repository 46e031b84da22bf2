// Work on batches by several threads with results taken in order: next() gives batches one at a time, work() runs on
// any thread, take() gets the results one at a time in the order of the batches. As many batches are in memory as threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hlat::reader {

template <class Next, class Work, class Take>
class Pipeline {
 public:
  Pipeline(Next next, Work work, Take take) : next_(std::move(next)), work_(std::move(work)), take_(std::move(take)) {}

  // Runs until next() gives nothing; throws what the first failing step threw, when all threads have ended.
  void run(int threads) {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < threads; ++i) helpers.emplace_back([this] { serve(); });
    serve();
    for (std::jthread& helper : helpers) helper.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void serve() {
    try {
      while (serve_one()) {
      }
    } catch (...) {
      const std::lock_guard lock(output_);
      if (!failure_) failure_ = std::current_exception();
      turn_changed_.notify_all();
    }
  }

  bool serve_one() {
    std::unique_lock input(input_);
    const uint64_t number = batches_;
    auto batch = next_();
    if (!batch) return false;
    ++batches_;
    input.unlock();

    auto result = work_(std::move(*batch));

    std::unique_lock output(output_);
    turn_changed_.wait(output, [&] { return turn_ == number || failure_; });
    if (failure_) return false;
    take_(std::move(result));
    ++turn_;
    turn_changed_.notify_all();
    return true;
  }

  Next next_;
  Work work_;
  Take take_;
  std::mutex input_;
  std::mutex output_;
  std::condition_variable turn_changed_;
  uint64_t batches_ = 0;  // under input_
  uint64_t turn_ = 0;     // under output_, with failure_
  std::exception_ptr failure_;
};

}  // namespace hlat::reader
