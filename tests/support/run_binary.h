// Runs the real hlat binary as a user would, for end-to-end tests.
#pragma once

#include <string>
#include <vector>

namespace hlat::test {

struct RunResult {
  int exit_code = 0;  // 128 + signal when it was killed, as in a shell
  std::string out;
  std::string err;
};

// Arguments reach the binary unchanged. `dir` is its working folder; empty: that of the test. Standard input is empty.
RunResult run_binary(const std::vector<std::string>& args, const std::string& dir = "");

}  // namespace hlat::test
