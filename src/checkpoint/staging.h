// Host memory that state is staged in on its way to the disk: equal buffers, taken once, which one thread fills and another empties in the
// same order. Pinned where a device copies into them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "config/config.h"
#include "tensor/copy_stream.h"

namespace hlat {

bool saves_anything(const CheckpointConfig& config);

// Bytes of staging of a rank that saves state_bytes of state and may take `available` bytes of the host for this. As the key says, else
// room for all of the state if that is no more than half of what is available, and 64 MiB in any case. 0: nothing is ever saved.
size_t staging_bytes(const CheckpointConfig& config, size_t state_bytes, double available);

// Seconds that updates may wait for the copies of one save: checkpoint.max_wait_s, and well below the time after which the peers of a rank
// that waits take it for dead (parallel.timeout_s).
double longest_update_wait(const Config& config);

class Staging {
 public:
  struct Filled {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };

  static size_t rounded(size_t bytes);  // up, to two or more buffers; what is rounded stays so

  // Takes rounded(bytes). copies: for pinned memory; null for plain memory. Must outlive this.
  Staging(size_t bytes, CopyStream* copies);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  size_t buffer_bytes() const { return buffer_bytes_; }

  // For a next save: all buffers are free. Nobody uses them.
  void reopen();
  // Waits for a free buffer; null: stopped.
  std::byte* take_free();
  void add_filled(const Filled& filled);
  void close();  // there is no more to come
  // Waits for the next filled buffer; none: stopped, or all there is was taken.
  std::optional<Filled> take_filled();
  void add_free(std::byte* buffer);
  void stop();  // from any thread: nobody waits any more, and what is staged is dropped
  bool stopped() const;

 private:
  using Buffer = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;
  void free_all();

  size_t buffer_bytes_;
  std::vector<Buffer> all_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte*> free_;
  std::deque<Filled> filled_;
  bool closed_ = false, stopped_ = false;
};

}  // namespace hlat
