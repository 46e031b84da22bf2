#include "base/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <future>

namespace hlat {

namespace {

constexpr std::chrono::seconds kAnswer{2};  // the first answer's time before the run ends without it

sigset_t taken_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

EndSignals::EndSignals(std::function<void(const Signal&)> answer) : answer_(std::move(answer)) {
  const sigset_t set = taken_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || stop_ < 0) fail("cannot watch for signals: {}", std::strerror(errno));
  thread_ = std::thread([this] { run(); });
}

EndSignals::~EndSignals() {
  const uint64_t one = 1;
  if (write(stop_, &one, sizeof one) == sizeof one) thread_.join();
  close(signals_);
  close(stop_);
}

void EndSignals::run() {
  std::array<pollfd, 2> watched{pollfd{.fd = signals_, .events = POLLIN, .revents = 0},
                                pollfd{.fd = stop_, .events = POLLIN, .revents = 0}};
  using Clock = std::chrono::steady_clock;
  Clock::time_point first_at;
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0) continue;  // interrupted
    if (watched[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) != sizeof info) continue;
    const int number = static_cast<int>(info.ssi_signo);
    const bool first = asked_ == 0;
    const Signal signal{.number = number, .sender = static_cast<int>(info.ssi_pid), .first = first};
    if (!first) {
      const bool repeated = number == asked_ && (number == SIGTERM || number == SIGUSR1) && Clock::now() - first_at < kRepeated;
      if (!repeated) answer_(signal);
      continue;
    }
    first_at = Clock::now();
    // In a thread of its own: an answer that nobody reads must not keep the second signal waiting.
    std::packaged_task<void()> task([answer = answer_, signal] { answer(signal); });
    const std::future<void> answered = task.get_future();
    std::thread(std::move(task)).detach();
    answered.wait_for(kAnswer);
    asked_ = number;  // after the answer, which so comes before the end that it asks for
  }
}

}  // namespace hlat
