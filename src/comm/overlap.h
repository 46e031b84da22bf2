// How operations of one group overlap with a computation, as a queue of them (comm_queue.h) wants it. A group's plain call starts after the
// device's work so far, and later work of the device sees its results. Operations between begin_overlap and end_overlap start after a mark
// that was taken when they were submitted, and work that the device was given since goes on. The default is that of tensors in host memory:
// there is no device's work to wait for. The thread that runs the operations calls begin_overlap and end_overlap; the one that submits them
// and gives the device its work calls the others, at any time.
#pragma once

#include <cstdint>

namespace hlat {

class Overlap {
 public:
  Overlap() = default;
  virtual ~Overlap() = default;
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  virtual uint64_t mark() { return 0; }  // a point in the device's work: all that it was given so far
  virtual void begin_overlap(uint64_t /*mark*/) {}
  virtual void end_overlap() {}
  // Returns when the device has done its work so far: to tell waiting for it from waiting for peers.
  virtual void await_device() {}
  // Whether calls only put work on a stream and return; then results are seen by the device's later work only after join().
  virtual bool on_stream() const { return false; }
  virtual void join() {}
  // Whether somebody waits for the results (at first), or a computation that they overlap with needs the core.
  virtual void hurry(bool /*on*/) {}
};

}  // namespace hlat
