#include "comm/comm_queue.h"

#include <utility>

#include "base/machine.h"

namespace hlat {

CommQueue::CommQueue(Comm& comm)
    : comm_(comm),
      overlap_(comm.overlap()),
      peers_(comm.size() > 1 && (comm.real() || comm.traces())),
      threaded_(peers_ && !overlap_.on_stream()),
      exceptions_(std::uncaught_exceptions()) {
  if (!threaded_) return;
  overlap_.hurry(false);
  thread_ = std::thread([this] { run(); });
}

CommQueue::~CommQueue() {
  if (!threaded_) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (std::uncaught_exceptions() > exceptions_) {
      // The peers may never come to what is still queued, and the way out must not wait for them.
      const bool idle = finished_ == submitted_;
      operations_.clear();
      if (!idle) comm_.cancel();
    }
  }
  work_.notify_all();
  thread_.join();
}

uint64_t CommQueue::submit(std::function<void(Comm&)> operation) {
  const uint64_t mark = peers_ ? overlap_.mark() : 0;
  std::unique_lock lock(mutex_);
  const uint64_t ticket = ++submitted_;
  if (threaded_) {
    operations_.push_back({std::move(operation), mark});
    lock.unlock();
    work_.notify_one();
    return ticket;
  }
  const double before = busy_s_;
  execute(lock, {std::move(operation), mark});
  waited_s_ += busy_s_ - before;
  return ticket;
}

void CommQueue::wait(uint64_t ticket) {
  if (threaded_) overlap_.await_device();
  std::unique_lock lock(mutex_);
  HLAT_CHECK(ticket <= submitted_, "{}: ticket {} of {}", comm_.name(), ticket, submitted_);
  if (finished_ < ticket) {
    const double start = now_s();
    overlap_.hurry(true);
    comm_.note_awaited(true);
    done_.wait(lock, [&] { return finished_ >= ticket; });
    comm_.note_awaited(false);
    overlap_.hurry(false);
    waited_s_ += now_s() - start;
  }
  if (failed_ != 0 && failed_ <= ticket) std::rethrow_exception(error_);
  if (peers_) overlap_.join();
}

void CommQueue::wait_all() {
  uint64_t last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = submitted_;
  }
  wait(last);
}

double CommQueue::busy_s() const {
  const std::lock_guard lock(mutex_);
  return busy_s_;
}

double CommQueue::waited_s() const {
  const std::lock_guard lock(mutex_);
  return waited_s_;
}

void CommQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !operations_.empty(); });
    if (operations_.empty()) return;
    const Operation operation = std::move(operations_.front());
    operations_.pop_front();
    comm_.note_queued(true);
    execute(lock, operation);
    comm_.note_queued(false);
    done_.notify_all();
  }
}

// Runs the operation without the lock, unless one before it failed.
void CommQueue::execute(std::unique_lock<std::mutex>& lock, const Operation& operation) {
  std::exception_ptr error;
  if (failed_ == 0) {
    lock.unlock();
    double start = now_s();
    try {
      if (peers_) {
        overlap_.begin_overlap(operation.mark);
        start = now_s();
      }
      operation.run(comm_);
    } catch (...) {
      error = std::current_exception();
    }
    if (peers_) overlap_.end_overlap();
    const double elapsed = now_s() - start;
    lock.lock();
    busy_s_ += elapsed;
  }
  ++finished_;
  if (error) {
    failed_ = finished_;
    error_ = error;
  }
}

}  // namespace hlat
