#include "data/loader.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace hlat {

Loader::Loader(Lanes lanes, int64_t first, int64_t count, const LoaderOptions& options)
    : lanes_(std::move(lanes)),
      first_(first),
      prefetch_(static_cast<uint64_t>(options.prefetch)),
      queues_(static_cast<size_t>(count)),
      rows_(row_bytes(count, lanes_.seq_len(), options) / sizeof(int32_t)) {
  HLAT_CHECK(first >= 0 && count > 0 && first + count <= lanes_.lanes() && options.prefetch > 0 && options.workers > 0,
             "lanes [{}, {}) of {}, {} rows ahead, {} workers", first, first + count, lanes_.lanes(), options.prefetch, options.workers);
  for (size_t i = 0; i < queues_.size(); ++i) {
    queues_[i].ring.resize(prefetch_);
    queues_[i].taken = lanes_.state(first + static_cast<int64_t>(i));
  }
  for (int i = 0; i < options.workers; ++i) readers_.emplace_back(lanes_.mixture());
  try {
    for (Readers& r : readers_) threads_.emplace_back([this, &r] { work(r); });
  } catch (...) {  // the system gives no more threads
    stop();
    throw;
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

size_t Loader::row_bytes(int64_t lanes, int64_t seq_len, const LoaderOptions& options) {
  return static_cast<size_t>(lanes * options.prefetch * (seq_len + 1)) * sizeof(int32_t);
}

int32_t* Loader::row(const Queue& q, uint64_t number) {
  const auto lane = static_cast<uint64_t>(&q - queues_.data());
  return rows_.data() + (lane * prefetch_ + number % prefetch_) * static_cast<uint64_t>(lanes_.seq_len() + 1);
}

// The lane that is least ahead: the step needs the same row of all lanes.
Loader::Queue* Loader::next_job() {
  Queue* best = nullptr;
  for (Queue& q : queues_) {
    if (q.busy || q.error || q.produced - q.consumed == prefetch_) continue;
    if (best == nullptr || q.produced < best->produced) best = &q;
  }
  return best;
}

void Loader::work(Readers& readers) {
  std::unique_lock lock(mutex_);
  for (;;) {
    Queue* q = nullptr;
    work_.wait(lock, [&] { return stopping_ || (q = next_job()) != nullptr; });
    if (stopping_) return;
    q->busy = true;
    const uint64_t number = q->produced;
    const int64_t lane = first_ + (q - queues_.data());
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    Slot slot;
    std::exception_ptr error;
    try {
      slot.surprisal = lanes_.read_row(lane, readers, row(*q, number));
      slot.after = lanes_.state(lane);
    } catch (...) {
      error = std::current_exception();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    lock.lock();
    worker_s_ += seconds;
    q->busy = false;
    q->error = error;
    if (!error) {
      q->ring[number % prefetch_] = std::move(slot);
      ++q->produced;
    }
    ready_.notify_all();
  }
}

double Loader::take(Queue& q, int32_t* inputs, int32_t* targets) {
  {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return q.produced > q.consumed || q.error; });
    if (q.produced == q.consumed) std::rethrow_exception(q.error);
  }
  // No worker touches the slot of a row that lies ready.
  const int32_t* tokens = row(q, q.consumed);
  std::copy_n(tokens, lanes_.seq_len(), inputs);
  std::copy_n(tokens + 1, lanes_.seq_len(), targets);
  const std::lock_guard lock(mutex_);
  Slot& slot = q.ring[q.consumed % prefetch_];
  q.taken = std::move(slot.after);
  ++q.consumed;
  work_.notify_one();
  return slot.surprisal;
}

double Loader::fill(int64_t first, int64_t count, int32_t* inputs, int32_t* targets) {
  HLAT_CHECK(first >= first_ && count > 0 && first + count <= first_ + static_cast<int64_t>(queues_.size()),
             "lanes [{}, {}) of a loader of lanes [{}, {})", first, first + count, first_, first_ + static_cast<int64_t>(queues_.size()));
  const int64_t width = lanes_.seq_len();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += take(queues_[static_cast<size_t>(first - first_ + i)], inputs + i * width, targets + i * width);
  return sum / static_cast<double>(count * width);
}

std::vector<LaneState> Loader::states() const {
  const std::lock_guard lock(mutex_);
  std::vector<LaneState> list;
  for (const Queue& q : queues_) list.push_back(q.taken);
  return list;
}

double Loader::worker_s() const {
  const std::lock_guard lock(mutex_);
  return worker_s_;
}

}  // namespace hlat
