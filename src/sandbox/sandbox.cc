#include "sandbox/sandbox.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/machine.h"
#include "sandbox/jail.h"
#include "sandbox/python_program.h"

namespace hlat::sandbox {
namespace {

constexpr double kMemoryWatch_s = 0.01, kProbePatience_s = 60;

std::string_view last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('\n') + 1);  // npos + 1 is 0
  return text.substr(text.rfind('\n') + 1);
}

// What must hold inside; a sandbox in which one line fails is none.
constexpr const char* kProbe = R"(
import os, socket
assert os.getuid() == os.geteuid() == os.getgid() == 1000 and os.getpid() == 1
assert not set(os.listdir('/')) - {'bin', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'sbin', 'tmp', 'usr'}
for folder in '/', '/usr', '/dev':
    assert not os.access(folder, os.W_OK), folder
for call in lambda: socket.socket(), lambda: os.setuid(0), lambda: os.chroot('/'):
    try:
        call()
    except OSError:
        continue
    raise AssertionError('a call that must be refused was not')
open('/tmp/file', 'w').write('scratch')
)";

// One run as its caller sees it: reads, looks at the clock and at memory, and ends what goes too far.
class Watch {
 public:
  Watch(const Options& options, Process& process, Descriptor output) : options_(options), process_(process), output_(std::move(output)) {}

  // All but `passed`, which takes more than an end with status 0.
  RunResult until_end() {
    while (!ended())
      if (!stopped_) look();
    const Process::End end = process_.collect();
    read_output();  // what was still on its way
    return {.outcome = stopped_ ? *stopped_ : judge(end),
            .exit_status = end.exit_status,
            .signal = end.signal,
            .output = std::move(text_),
            .seconds = now_s() - begin_};
  }

 private:
  // Waits until there is something to do.
  bool ended() {
    const double time = stopped_ ? 1 : std::clamp(begin_ + options_.seconds - now_s(), 0.0, kMemoryWatch_s);
    const bool silent = stopped_ || output_closed_;
    std::array<pollfd, 2> wait{pollfd{process_.handle().number(), POLLIN, 0}, pollfd{silent ? -1 : output_.number(), POLLIN, 0}};
    const int ready = poll(wait.data(), wait.size(), static_cast<int>(std::ceil(time * 1000)));
    HLAT_CHECK(ready >= 0 || errno == EINTR, "poll: error {}", errno);
    if (ready <= 0) return false;
    if (wait[1].revents == POLLHUP) output_closed_ = true;
    return wait[0].revents != 0;
  }

  void look() {
    read_output();
    const double now = now_s();
    if (now - begin_ >= options_.seconds) stop(Outcome::timed_out);
    if (now - looked_ < kMemoryWatch_s) return;
    looked_ = now;
    if (own_memory(process_tree(process_.id())) > options_.memory) stop(Outcome::memory);
  }

  void read_output() {
    if (!read_available(output_, text_, options_.output)) stop(Outcome::output);
  }

  void stop(Outcome why) {
    if (stopped_) return;
    stopped_ = why;
    process_.kill();
  }

  Outcome judge(const Process::End& end) const {
    if (end.signal != 0) return Outcome::killed;
    if (end.exit_status == 0) return Outcome::unfinished;
    // Past its address space the interpreter has an exception to give.
    return last_line(text_).starts_with("MemoryError") ? Outcome::memory : Outcome::failed;
  }

  const Options& options_;
  Process& process_;
  Descriptor output_;
  std::string text_;
  double begin_ = now_s(), looked_ = begin_;
  bool output_closed_ = false;  // by all that could write to it
  std::optional<Outcome> stopped_;
};

RunResult run_in(const Jail& jail, const Options& options, const std::string& program) {
  const std::string mark = new_mark();
  Pipe output = make_pipe(), verdict = make_pipe();
  Jail::Running running = jail.start({.input = open_null(),
                                      .output = std::move(output.write_end),
                                      .program = make_memory_file(marked_program(mark, program)),
                                      .verdict = std::move(verdict.write_end)});
  RunResult result = Watch(options, running.process, std::move(output.read_end)).until_end();
  std::string written;
  const bool marked = read_available(verdict.read_end, written, mark.size()) && written == mark;
  if (result.outcome == Outcome::unfinished && marked) result.outcome = Outcome::passed;
  return result;
}

}  // namespace

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed: return "passed";
    case Outcome::failed: return "failed";
    case Outcome::unfinished: return "unfinished";
    case Outcome::timed_out: return "timed out";
    case Outcome::memory: return "memory";
    case Outcome::output: return "output";
    case Outcome::killed: return "killed";
  }
  return "?";
}

Sandbox::Sandbox(const Options& options) : options_(options), jail_(std::make_unique<Jail>(options, python_arguments())) {
  HLAT_CHECK(options.seconds > 0 && options.processes > 0, "{} seconds, {} processes", options.seconds, options.processes);
  if (!std::filesystem::exists("/proc/thread-self/children"))
    fail<UsageError>(
        "the sandbox for untrusted programs watches their memory in /proc, which does not tell the children of a process here: "
        "mount /proc, with a kernel that has CONFIG_PROC_CHILDREN");
  Options patient = options;
  patient.seconds = std::max(options.seconds, kProbePatience_s);
  const RunResult probe = run_in(*jail_, patient, kProbe);
  if (probe.outcome == Outcome::passed) return;
  fail<UsageError>("the sandbox for untrusted programs does not hold on this machine, so none is run: its own test {} ({})",
                   name_of(probe.outcome), last_line(probe.output));
}

Sandbox::~Sandbox() = default;

RunResult Sandbox::run(const std::string& program) const { return run_in(*jail_, options_, program); }

}  // namespace hlat::sandbox
