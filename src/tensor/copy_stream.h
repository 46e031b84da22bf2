// Copies between a device's memory and pinned memory of the host, overlapped with the device's work, in the order they are asked for.
// One thread at a time uses a CopyStream; only mark() and await() may be called meanwhile, by the thread that gives the device its work.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hlat {

class CopyStream {
 public:
  CopyStream() = default;
  virtual ~CopyStream() = default;
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // Error when memory is short. Before the first step only: it takes about as long as writing the memory, and a device may stop its work
  // meanwhile. The memory lies near the processor of the calling thread; one that is bound near the device gets the best rate. Many GiB
  // are better taken in parts of tens of MiB: then a rank that runs short can go on with what it has.
  virtual std::byte* allocate_pinned(size_t bytes) = 0;
  virtual void free_pinned(std::byte* p) = 0;

  // A point in the device's work: all that it was given so far. Each is waited for once, at most. Not while work is recorded.
  virtual uint64_t mark() = 0;
  virtual void wait_for(uint64_t mark) = 0;  // later copies start after that point; returns at once
  virtual void await(uint64_t mark) = 0;     // returns when the device has come to that point

  virtual void fetch(void* host, const void* device, size_t bytes) = 0;
  virtual void put(void* device, const void* host, size_t bytes) = 0;
  virtual void copy(void* device, const void* from_device, size_t bytes) = 0;
  virtual void finish() = 0;  // all copies are done: the host and later work of the device see them
};

}  // namespace hlat
