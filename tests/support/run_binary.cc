#include "support/run_binary.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <stdexcept>

#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

// One word for sh, whatever it holds.
std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

RunResult run_binary(const std::vector<std::string>& args, const std::string& dir) {
  const TempDir temp;
  std::string command = dir.empty() ? "" : "cd " + shell_word(dir) + " && ";
  command += "exec " + shell_word(hlat_binary());
  for (const std::string& arg : args) command += " " + shell_word(arg);
  command += " </dev/null 2>" + shell_word(temp.path("stderr"));

  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  RunResult result;
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) result.out.append(buffer.data(), got);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.err = slurp(temp.path("stderr"));
  return result;
}

}  // namespace hlat::test
