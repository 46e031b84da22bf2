#include "comm/stream_watch.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/machine.h"

namespace hlat {

StreamWatch::StreamWatch(double limit_s) : limit_s_(limit_s), thread_([this] { run(); }) {}

StreamWatch::~StreamWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void StreamWatch::add(WatchedStream& stream) {
  const std::lock_guard lock(mutex_);
  streams_[&stream] = {};
}

void StreamWatch::remove(WatchedStream& stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(&stream);
}

void StreamWatch::give_up(const std::string& why) {
  const std::lock_guard lock(mutex_);
  fail_with(why);
}

void StreamWatch::check() {
  if (!failed_) return;
  const std::lock_guard lock(mutex_);
  fail<FaultError>("{}", reason_);
}

void StreamWatch::fail_with(const std::string& why) {
  if (failed_) return;
  reason_ = why;
  failed_ = true;
  for (auto& [stream, seen] : streams_) stream->abort();
}

std::string StreamWatch::look(WatchedStream& stream, Seen& seen) const {
  if (std::string error = stream.error(); !error.empty()) return error;
  const auto current = stream.current();
  if (!current) {
    seen = {};
    return {};
  }
  if (current->number != seen.number) seen = {.number = current->number, .since = now_s()};
  if (now_s() - seen.since <= limit_s_) return {};
  return fmt::format("{}: waited {:g} s for its peers", current->what, limit_s_);
}

void StreamWatch::run() {
  const auto pause = std::chrono::duration<double>(std::clamp(limit_s_ / 10, 0.01, 0.2));
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, pause, [&] { return stopping_; })) {
    if (failed_) continue;
    for (auto& [stream, seen] : streams_) {
      const std::string why = look(*stream, seen);
      if (why.empty()) continue;
      fail_with(why);
      break;
    }
  }
}

}  // namespace hlat
