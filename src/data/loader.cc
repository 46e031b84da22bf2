#include "data/loader.h"

#include <utility>

#include "base/error.h"

namespace hlat {

Loader::Loader(Lanes lanes, Part own, const LoaderOptions& options)
    : lanes_(std::move(lanes)),
      own_(own),
      prefetch_(static_cast<uint64_t>(options.prefetch)),
      queues_(static_cast<size_t>(own.count)),
      rows_(row_bytes(own.count, lanes_.seq_len(), options) / sizeof(int32_t)) {
  HLAT_CHECK(own.begin >= 0 && own.count > 0 && own.end() <= lanes_.lanes() && options.prefetch > 0 && options.workers > 0,
             "lanes [{}, {}) of {}, {} rows ahead, {} workers", own.begin, own.end(), lanes_.lanes(), options.prefetch, options.workers);
  for (size_t i = 0; i < queues_.size(); ++i) {
    queues_[i].ring.resize(prefetch_);
    queues_[i].before = queues_[i].taken = lanes_.state(own.begin + static_cast<int64_t>(i));
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
    const int64_t lane = own_.begin + (q - queues_.data());
    lock.unlock();
    ReadyRow ready;
    std::exception_ptr error;
    try {
      ready.surprisal = lanes_.read_row(lane, readers, row(*q, number));
      ready.after = lanes_.state(lane);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    q->busy = false;
    q->error = error;
    if (!error) {
      q->ring[number % prefetch_] = std::move(ready);
      ++q->produced;
    }
    ready_.notify_all();
  }
}

std::optional<double> Loader::take(Queue& q, int64_t row_of_batch, Batch& batch) {
  {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return q.produced > q.consumed || q.error; });
    if (q.produced == q.consumed) std::rethrow_exception(q.error);
  }
  // No worker touches a row that lies ready.
  batch.set_row(row_of_batch, row(q, q.consumed));
  const std::lock_guard lock(mutex_);
  ReadyRow& ready = q.ring[q.consumed % prefetch_];
  q.before = std::exchange(q.taken, std::move(ready.after));
  ++q.consumed;
  work_.notify_one();
  return ready.surprisal;
}

std::optional<double> Loader::fill(int64_t first, Batch& batch) {
  HLAT_CHECK(first >= 0 && batch.rows > 0 && first + batch.rows <= own_.count && batch.seq_len == lanes_.seq_len(),
             "rows [{}, {}) of {} tokens from a loader of {} lanes with rows of {}", first, first + batch.rows, batch.seq_len, own_.count,
             lanes_.seq_len());
  std::optional<double> sum = 0.0;
  for (int64_t i = 0; i < batch.rows; ++i) {
    const std::optional<double> surprisal = take(queues_[static_cast<size_t>(first + i)], i, batch);
    sum = sum && surprisal ? std::optional(*sum + *surprisal) : std::nullopt;
  }
  return sum ? std::optional(*sum / static_cast<double>(batch.rows * batch.seq_len)) : std::nullopt;
}

std::vector<LaneState> Loader::states() const {
  const std::lock_guard lock(mutex_);
  std::vector<LaneState> list;
  for (const Queue& q : queues_) list.push_back(q.taken);
  return list;
}

std::vector<LaneState> Loader::states_before() const {
  const std::lock_guard lock(mutex_);
  std::vector<LaneState> list;
  for (const Queue& q : queues_) list.push_back(q.before);
  return list;
}

uint64_t Loader::rows_read() const {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const Queue& q : queues_) sum += q.produced;
  return sum;
}

}  // namespace hlat
