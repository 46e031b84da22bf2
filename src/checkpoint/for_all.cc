#include "checkpoint/for_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hlat {

int scan_threads() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostScanThreads); }

void for_all(size_t count, int threads, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
  };
  {
    std::vector<std::jthread> others;
    for (size_t t = 1; t < std::min(count, static_cast<size_t>(threads)); ++t) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hlat
