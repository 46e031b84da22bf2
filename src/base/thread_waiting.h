// How long threads of a parallel region spin before they sleep. libgomp's default is some 10 ms at every barrier, which takes the core from
// the very thread that is waited for when another process is busy on this machine (docs/adr/0011). libgomp reads its limit when it is
// loaded, before main: the program starts itself once more with the limit in its environment.
#pragma once

#include <functional>

namespace hlat {

// Long enough that a thread seldom sleeps between the regions of a step; a small part of a scheduler's time slice.
inline constexpr const char* kSpinVariable = "GOMP_SPINCOUNT";
inline constexpr const char* kSpinCount = "2000";

// Whether nobody has said yet how threads wait: the user, or bound_spinning() itself. get: as std::getenv.
bool waiting_is_undecided(const std::function<const char*(const char*)>& get);

// To be called first in main. Starts this program anew, as the same process, where waiting is undecided; where that is not possible the
// program goes on as it is, only slower on a busy machine.
void bound_spinning(char** argv);

}  // namespace hlat
