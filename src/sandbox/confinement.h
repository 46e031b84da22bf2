// The first process of a run, from the clone to the program: it gives up what it was, builds its own root, takes on the limits and
// becomes the interpreter. Until then it shares the memory of a process with many threads, whose locks it must not wait for: it
// allocates nothing and calls no library, only the kernel.
#pragma once

#include <sys/types.h>

#include <array>
#include <vector>

#include "sandbox/sandbox.h"
#include "sandbox/system_view.h"

struct sock_fprog;

namespace hlat::sandbox {

// The user and group that the program is to itself. The host's name for them is Jail's choice.
constexpr uid_t kInsideId = 1000;

// Descriptors of the program, beyond the standard ones.
constexpr int kProgramDescriptor = 3, kVerdictDescriptor = 4;

struct Refusal {
  const char* step = nullptr;
  int error = 0;
};

struct Confinement {  // made before the clone; all that it points to lives until the program runs
  const Options& options;
  const std::vector<Place>& view;
  const char* scratch_options;  // of its mount
  const sock_fprog* filter;
  char* const* arguments;  // the first is the interpreter's path
  char* const* environment;
  bool clear_groups;               // nobody may do so but root
  std::array<int, 5> descriptors;  // become 0 to 4
  int asks;                        // to write: a byte once it lives and wants its ids
  int may_go;                      // to read: a byte when it has them; its end means that the caller is dead
  Refusal& refusal;                // for the caller, where the system refuses a step
};

// Takes a Confinement, as clone hands it over. Does not return.
int confine(void* confinement);

}  // namespace hlat::sandbox
