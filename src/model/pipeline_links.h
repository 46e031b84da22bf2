// Activations and their gradients between neighbouring pipeline stages. Receives block; sends leave from a ring of
// kSendBuffers buffers per direction, so a stage goes on computing while they are under way. Buffers are allocated when
// first used and stay. Messages are told apart by direction (a channel each), micro-batch and the receiver's chunk.
#pragma once

#include <array>

#include "comm/comm.h"
#include "parallel/pipeline_schedule.h"

namespace hlat {

enum class Flow : uint8_t { forward, backward };

class PipelineLinks {
 public:
  // Messages are (rows, hidden) of dtype.
  PipelineLinks(Comm& pp, Region& region, DType dtype, const Shape& shape, int chunks);

  // The first rows of the next buffer of the ring; waits until its last message has left.
  Tensor buffer(Flow flow, int64_t rows);
  // Sends that buffer to the next virtual stage (forward) or the previous one (backward).
  void send(Flow flow, int64_t micro, int chunk);
  // From the previous virtual stage (forward) or the next one (backward).
  void recv(Flow flow, Tensor t, int64_t micro, int chunk);
  void flush();  // all sends have left

 private:
  struct Ring {
    std::array<Tensor, kSendBuffers> buffers{};
    std::array<Request, kSendBuffers> requests{};
    size_t next = 0;
    int64_t rows = 0;  // of the next message
  };
  static int tag(Flow flow, int64_t micro, int receiving_chunk);

  Comm& pp_;
  Region& region_;
  DType dtype_;
  Shape shape_;
  std::array<Ring, 2> rings_{};
};

}  // namespace hlat
