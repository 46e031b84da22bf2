// Ranks that are threads of one process: distributed tests with no launcher. A message is copied once, from the
// sender's tensor into the receiver's, by whichever of the two comes second. Waiting ranks sleep.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/comm.h"

namespace hlat {

inline constexpr double kThreadTimeLimit = 600;  // seconds one message may take

// The ranks of a world, one for each thread to use.
std::vector<std::unique_ptr<Comm>> make_thread_comms(int size, double time_limit_s = kThreadTimeLimit);

// Runs body on every rank of a world, each in a thread of its own. When one throws, the others' communication throws an
// Error at once; all threads are joined and the first exception comes out. A rank must not throw while a message of its
// own, on memory that ends with it, is under way.
void run_thread_ranks(int size, const std::function<void(Comm& world)>& body, double time_limit_s = kThreadTimeLimit);

}  // namespace hlat
