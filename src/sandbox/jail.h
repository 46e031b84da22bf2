// Starts confined processes. Holds what all runs share: the view of the system, the filter, the interpreter's command line.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "sandbox/confinement.h"
#include "sandbox/process.h"

namespace hlat::sandbox {

// What the first process of a run holds. The caller's other ends are its own.
struct Ends {
  Descriptor input, output, program, verdict;
};

class Jail {
 public:
  // `interpreter`: arguments of python3.
  Jail(const Options& options, const std::vector<std::string>& interpreter);

  // A process that is, when this returns, inside and about to run its program. It dies with the thread that called. `life` is to
  // be kept as long as the process. UsageError names the step that this system refuses, FaultError one that lacked something.
  struct Running {
    Process process;
    Descriptor life;
  };
  Running start(const Ends& ends) const;

 private:
  static bool is_dumpable();  // this process: whether it may leave a core

  Options options_;
  std::vector<Place> view_ = system_view();
  std::vector<sock_filter> filter_;
  std::string scratch_options_;
  std::vector<std::string> arguments_, environment_;
  bool dumpable_ = is_dumpable();
};

}  // namespace hlat::sandbox
