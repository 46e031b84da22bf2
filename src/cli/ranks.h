// Runs a command's body on every rank. When one fails it says who and where, and takes all ranks down with it: a peer
// must not wait for one that is gone.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "config/config.h"
#include "runtime/session.h"

namespace hlat {

// `step` is read when the body fails; 0: before the first step. With one rank the exception just passes. Checks that
// all ranks have the same config. `tell` records a failure before it is printed, and returns more words for the message.
using OnFailure = std::function<std::string(const std::exception&, int exit_code)>;
void run_on_ranks(Session& session, const Config& config, const int64_t& step, const std::function<void()>& body,
                  const OnFailure& tell = {});

// UsageError when a rank has another config, but for the device: a host with an old copy of the file, or a rank with other words, would
// train something else or wait forever. Collective.
void check_same(Comm& world, const Config& config);

// This process among its peers. Where they do not come within parallel.start_timeout_s it says who is missing, and ends.
Session start_session(const Launch& launch, const ParallelConfig& limits);

// How this process was started, from its environment. UsageError when its ranks could not meet.
Launch this_launch();

// "rank 3 of 8 on node-2: " before what this rank alone says; empty where it is the only one.
std::string where(const Launch& launch);

// All ranks read the same input, so one of them speaks for all: rank 0, or a process whose place is not clear.
bool is_reporting_rank();

// For a rank that has nothing to say about a failure of all: a launcher ends the job with the first rank that leaves, and
// that must be the one that speaks.
void delay_exit_after_rank_0();

}  // namespace hlat
