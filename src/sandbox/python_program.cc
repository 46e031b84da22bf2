#include "sandbox/python_program.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>

#include "base/error.h"
#include "sandbox/confinement.h"

namespace hlat::sandbox {
namespace {

constexpr size_t kMarkBytes = 32;

// The program is __main__ as if it had been started alone: its names, and the folders that modules come from, have none of ours.
constexpr const char* kRunner = R"(
import os, sys
def run(write=os.write, getpid=os.getpid):
    with open({program}, 'rb') as file:
        mark, text = file.read({mark}), file.read()
    sys.path[:] = [folder for folder in sys.path if folder]
    names = sys.modules['__main__'].__dict__
    for name in ('run', 'os', 'sys'):
        del names[name]
    exec(compile(text, '<program>', 'exec', dont_inherit=True), names)
    if getpid() == 1:
        write({verdict}, mark)
run()
)";

}  // namespace

std::vector<std::string> python_arguments() {
  // Modules of the user and environment variables cannot come in: there are none inside but ours.
  return {
      "-s", "-B", "-c",
      fmt::format(kRunner, fmt::arg("program", kProgramDescriptor), fmt::arg("mark", kMarkBytes), fmt::arg("verdict", kVerdictDescriptor))};
}

std::string new_mark() {
  std::array<uint64_t, 2> random{};
  if (getrandom(random.data(), sizeof random, 0) != sizeof random) fail<FaultError>("the system gives no random bytes");
  return fmt::format("{:016x}{:016x}", random[0], random[1]);
}

std::string marked_program(const std::string& mark, const std::string& program) {
  HLAT_CHECK(mark.size() == kMarkBytes, "a mark of {} bytes", mark.size());
  return mark + program;
}

}  // namespace hlat::sandbox
