// Signals that ask a process to end.
#include "base/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace hlat {
namespace {

// In a process of its own: the threads of this one do not block the signals.
template <class Body>
int exit_code_in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(EndSignals, AnAnswerThatBlocksKeepsNeitherTheEndNorTheSecondSignalWaiting) {
  EXPECT_EQ(exit_code_in_child([] {
              const EndSignals signals([](const EndSignals::Signal& signal) {
                if (!signal.first) _exit(7);
                while (true) std::this_thread::sleep_for(std::chrono::hours(1));
              });
              kill(getpid(), SIGTERM);
              while (signals.asked() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
              kill(getpid(), SIGTERM);
              std::this_thread::sleep_for(std::chrono::minutes(1));
            }),
            7);
}

TEST(EndSignals, TheAnswerComesBeforeTheEndThatItAsksFor) {
  EXPECT_EQ(exit_code_in_child([] {
              std::atomic<bool> answered = false;
              const EndSignals signals([&](const EndSignals::Signal&) {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                answered = true;
              });
              kill(getpid(), SIGTERM);
              while (signals.asked() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
              _exit(answered ? 0 : 2);
            }),
            0);
}

TEST(EndSignals, ARequestThatComesTwiceIsOne) {
  EXPECT_EQ(exit_code_in_child([] {
              std::atomic<int> answers = 0;
              const EndSignals signals([&](const EndSignals::Signal& signal) {
                ++answers;
                if (!signal.first) _exit(signal.number == SIGINT && answers == 2 ? 0 : 2);
              });
              for (const int again : {SIGTERM, SIGTERM, SIGINT}) {
                kill(getpid(), again);
                while (signals.asked() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
              }
              std::this_thread::sleep_for(std::chrono::minutes(1));
            }),
            0);
}

}  // namespace
}  // namespace hlat
