#include "checkpoint/state_reading.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "checkpoint/state_source.h"

namespace hlat {
namespace {

constexpr int64_t kChunk = int64_t{1} << 19;  // elements that are uploaded at once
constexpr int64_t kJob = kChunk << 3;         // that one thread reads in order: few saved pieces lie in two jobs

struct Chunk {
  Tensor to;                            // rows on the device
  std::vector<std::byte> saved, ready;  // as it was saved, where that is another type, and as it is uploaded
};

class Reading {
 public:
  Reading(CheckpointReader& reader, const std::vector<TensorToRead>& tensors, Device& device) : reader_(reader), device_(device) {
    for (const TensorToRead& t : tensors)
      for (int64_t begin = 0; begin < t.to.numel(); begin += kJob) jobs_.push_back({&t, begin, std::min(begin + kJob, t.to.numel())});
  }
  ~Reading() { stop(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  void run(int threads) {
    const auto count = static_cast<int>(std::clamp<size_t>(jobs_.size(), 1, static_cast<size_t>(std::max(1, threads))));
    for (int i = 0; i < 2 * count; ++i) free_.push_back(std::make_unique<Chunk>());
    for (int i = 0; i < count; ++i) {
      ++readers_;
      threads_.emplace_back([this] { work(); });
    }
    upload_all();
    stop();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Job {
    const TensorToRead* tensor;
    int64_t begin, end;
  };

  // On a thread of its own.
  void work() {
    std::exception_ptr error;
    try {
      while (const Job* job = next_job())
        for (int64_t begin = job->begin; begin < job->end; begin += kChunk) {
          std::unique_ptr<Chunk> chunk = take_free();
          if (!chunk) break;
          fill(*chunk, *job->tensor, begin, std::min(begin + kChunk, job->end));
          const std::lock_guard lock(mutex_);
          ready_.push_back(std::move(chunk));
          changed_.notify_all();
        }
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    --readers_;
    changed_.notify_all();
  }

  const Job* next_job() {
    const std::lock_guard lock(mutex_);
    return ended() || next_ == jobs_.size() ? nullptr : &jobs_[next_++];
  }

  bool ended() const { return stopping_ || error_; }

  std::unique_ptr<Chunk> take_free() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended() || !free_.empty(); });
    if (ended()) return nullptr;
    std::unique_ptr<Chunk> chunk = std::move(free_.back());
    free_.pop_back();
    return chunk;
  }

  void fill(Chunk& chunk, const TensorToRead& t, int64_t begin, int64_t end) {
    const DType saved = reader_.index().tensors[static_cast<size_t>(t.tensor)].dtype;
    const auto count = static_cast<size_t>(end - begin);
    chunk.to = t.to.rows(begin, end);
    chunk.ready.resize(count * size_of(t.to.dtype));
    if (saved == t.to.dtype) return reader_.read(t.tensor, t.map, begin, end, chunk.ready.data());
    chunk.saved.resize(count * size_of(saved));
    reader_.read(t.tensor, t.map, begin, end, chunk.saved.data());
    convert_elements(chunk.ready.data(), t.to.dtype, chunk.saved.data(), saved, end - begin);
  }

  void upload_all() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !ready_.empty() || readers_ == 0; });
      if (ready_.empty() || error_) return;
      std::unique_ptr<Chunk> chunk = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      device_.upload(chunk->to, chunk->ready.data());
      lock.lock();
      free_.push_back(std::move(chunk));
      changed_.notify_all();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

  CheckpointReader& reader_;
  Device& device_;
  std::vector<Job> jobs_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex.
  size_t next_ = 0;
  int readers_ = 0;  // at work
  bool stopping_ = false;
  std::exception_ptr error_;  // the first
  std::vector<std::unique_ptr<Chunk>> free_;
  std::deque<std::unique_ptr<Chunk>> ready_;
};

}  // namespace

void read_tensors(CheckpointReader& reader, const std::vector<TensorToRead>& tensors, Device& device, int threads) {
  Reading(reader, tensors, device).run(threads);
}

}  // namespace hlat
