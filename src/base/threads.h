// Threads of one rank. Work is cut into fixed ranges, so results never depend on scheduling.
// OpenMP carries the threads because oneDNN uses the same pool.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hlat {

class Threads {
 public:
  explicit Threads(int count) : count_(std::max(1, count)) {}
  int count() const { return count_; }

  // Calls body(begin, end) on contiguous shares of [0, n), each at least `grain` items (the last may be shorter).
  template <class Body>
  void ranges(int64_t n, int64_t grain, const Body& body) const {
    const int64_t parts = std::clamp<int64_t>(n / std::max<int64_t>(grain, 1), 1, count_);
    if (parts == 1) {
      if (n > 0) body(int64_t{0}, n);
      return;
    }
#pragma omp parallel for num_threads(count_) schedule(static, 1)
    for (int64_t p = 0; p < parts; ++p) body(n * p / parts, n * (p + 1) / parts);
  }

  // Calls body(item, thread) for every item; items are handed out one by one, for uneven work.
  template <class Body>
  void items(int64_t n, const Body& body) const;

 private:
  int count_;
};

}  // namespace hlat

#include <omp.h>

template <class Body>
void hlat::Threads::items(int64_t n, const Body& body) const {
  if (count_ == 1 || n <= 1) {
    for (int64_t i = 0; i < n; ++i) body(i, 0);
    return;
  }
#pragma omp parallel for num_threads(count_) schedule(dynamic, 1)
  for (int64_t i = 0; i < n; ++i) body(i, omp_get_thread_num());
}
