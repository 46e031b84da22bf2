// What the program's exit code means: the one table, told to users in docs/exit-codes.md.
#pragma once

#include <exception>

namespace hlat {

enum ExitCode {
  kOk = 0,
  kFailed = 1,           // none of the below: Error
  kUsage = 2,            // bad input: UsageError
  kBug = 3,              // a broken contract of our own: CheckFailed
  kFault = 4,            // a peer, the network or a disk failed: FaultError
  kNumerical = 5,        // the numbers went wrong: NumericalError
  kPreemptedSaved = 6,   // SIGTERM or SIGUSR1 ended it early, with all saved that a restart needs: Interrupted
  kEndedBySignal = 128,  // plus its number
};

int exit_code_of_signal(int signal, bool saved);
int exit_code_of(const std::exception& e);

}  // namespace hlat
