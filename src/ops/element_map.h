// Where the elements of a local piece lie in the global tensor. Initial values and rounding noise are functions of the
// global element, so a shard (rows, columns or a flat range of either) gets just what the whole tensor has there.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hlat {

// Local element e, counted from `offset`, is global element first + (offset + e) / run * stride + (offset + e) % run;
// run = 0: all of one run, first + offset + e.
//   rows [r, ...) of a (R, C) matrix         {.first = r * C}
//   columns [c, c + w) of it                 {.first = c, .run = w, .stride = C}
//   elements [o, ...) of one of these pieces the same with .offset = o
struct ElementMap {
  int64_t first = 0;
  int64_t run = 0;
  int64_t stride = 0;
  int64_t offset = 0;

  bool valid() const { return first >= 0 && offset >= 0 && run >= 0 && (run == 0 || stride >= run); }
  bool one_run() const { return run == 0 || run == stride; }

  int64_t global(int64_t e) const {
    const int64_t i = offset + e;
    return one_run() ? first + i : first + i / run * stride + i % run;
  }

  // Calls f(local_begin, local_end, global_first) for the runs of local elements [begin, end), in order.
  template <class F>
  void for_runs(int64_t begin, int64_t end, const F& f) const {
    while (begin < end) {
      const int64_t stop = one_run() ? end : std::min(end, begin + run - (offset + begin) % run);
      f(begin, stop, global(begin));
      begin = stop;
    }
  }

  bool operator==(const ElementMap&) const = default;
};

}  // namespace hlat
