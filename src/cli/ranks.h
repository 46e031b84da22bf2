// Runs a command's body on every rank. When one fails it says who and where, and takes all ranks down with it: a peer
// must not wait for one that is gone.
#pragma once

#include <functional>

#include "runtime/session.h"

namespace hlat {

// `step` is read when the body fails; 0: before the first step. With one rank the exception just passes.
void run_on_ranks(Session& session, const int64_t& step, const std::function<void()>& body);

// How this process was started, from its environment.
Launch this_launch();

}  // namespace hlat
