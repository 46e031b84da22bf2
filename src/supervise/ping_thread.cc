#include "supervise/ping_thread.h"

#include <chrono>

namespace hlat {

void SharedLine::send(const std::string& line) {
  const std::lock_guard lock(mutex_);
  socket_.send(line);
}

std::vector<std::string> SharedLine::receive() {
  const std::lock_guard lock(mutex_);
  return socket_.receive();
}

void SharedLine::flush() {
  const std::lock_guard lock(mutex_);
  socket_.flush();
}

void SharedLine::close() {
  const std::lock_guard lock(mutex_);
  socket_.close();
}

bool SharedLine::closed() const {
  const std::lock_guard lock(mutex_);
  return socket_.closed();
}

PingThread::PingThread(std::string line, double every_s) : line_(std::move(line)), every_s_(every_s), thread_([this] { run(); }) {}

PingThread::~PingThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PingThread::add(const std::shared_ptr<SharedLine>& line) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(line);
}

void PingThread::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(every_s_), [&] { return ends_; }))
    std::erase_if(lines_, [&](const std::weak_ptr<SharedLine>& weak) {
      const std::shared_ptr<SharedLine> line = weak.lock();
      if (line == nullptr || line->closed()) return true;
      line->send(line_);
      return false;
    });
}

}  // namespace hlat
