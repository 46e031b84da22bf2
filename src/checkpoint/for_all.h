// Work on many items from several threads, for readers of whole checkpoints: items are handed out in order, so threads read near each
// other.
#pragma once

#include <cstdint>
#include <functional>

namespace hlat {

int scan_threads();  // those that read a checkpoint from one machine: its cores, at most kMostScanThreads
inline constexpr int kMostScanThreads = 4;

// Calls body(i) for all i below count. What a body throws ends the work and is thrown here; of several the first.
void for_all(size_t count, int threads, const std::function<void(size_t)>& body);

// Told about bytes as they are done, from any thread.
using BytesDone = std::function<void(uint64_t)>;

}  // namespace hlat
