#include "supervise/output_writer.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>

namespace hlat {

namespace {

constexpr std::chrono::seconds kLastWords{5};

}  // namespace

struct OutputWriter::State {
  Write write;
  size_t most;
  std::mutex mutex;
  std::condition_variable wake, done;
  std::deque<std::string> texts;
  size_t bytes = 0, left_out = 0;  // waiting; that were dropped since the last word about it
  bool writes = false, ends = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return ends || !texts.empty(); });
      if (texts.empty()) return;
      std::string text = std::move(texts.front());
      texts.pop_front();
      bytes -= text.size();
      if (left_out > 0) text = fmt::format("\n[{} bytes of output were left out: nobody took them]\n", left_out) + text;
      left_out = 0;
      writes = true;
      lock.unlock();
      write(text);
      lock.lock();
      writes = false;
      done.notify_all();
    }
  }
};

OutputWriter::OutputWriter(Write write, size_t most_bytes) : state_(std::make_shared<State>()) {
  state_->write = std::move(write);
  state_->most = most_bytes;
  // Signals are for others: a thread that does not block them would be ended by one, and the process with it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([state = state_] { state->run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

OutputWriter::~OutputWriter() {
  std::unique_lock lock(state_->mutex);
  state_->ends = true;
  state_->wake.notify_all();
  state_->done.wait_for(lock, kLastWords, [&] { return state_->texts.empty() && !state_->writes; });
}

void OutputWriter::put(const std::string& text) {
  if (text.empty()) return;
  const std::lock_guard lock(state_->mutex);
  state_->texts.push_back(text);
  state_->bytes += text.size();
  for (; state_->bytes > state_->most && state_->texts.size() > 1; state_->texts.pop_front()) {
    state_->bytes -= state_->texts.front().size();
    state_->left_out += state_->texts.front().size();
  }
  state_->wake.notify_all();
}

}  // namespace hlat
