// The pipeline schedule as plain data: what one stage does in one step, in order. 1F1B for one chunk, interleaved 1F1B for more,
// for any number of micro-batches.
// Virtual stage v = chunk * stages + stage runs the v-th piece of the model. Receives and sends are implied: the forward of v > 0
// receives from the stage of v - 1 and, unless v is last, sends to that of v + 1; the backward goes the other way. A message is
// named by kind, micro and the receiving chunk; within one kind a stage receives in the order its peer sends.
// A receive blocks. A send does not, but it reuses the buffer of the send kSendBuffers before it of the same kind, and waits until
// the peer has taken that one. Under these rules no schedule here can deadlock: the proof is in pipeline_schedule.cc.
#pragma once

#include <cstdint>
#include <vector>

namespace hlat {

inline constexpr int kSendBuffers = 2;  // per stage, for each of forward and backward; one can deadlock with chunks > 1

enum class ActionKind : uint8_t { forward, backward };

// One piece of work of a stage. `slot` is the place of the micro-batch's saved activations in its chunk: taken by the forward,
// given back by the backward.
struct Action {
  ActionKind kind = ActionKind::forward;
  int micro = 0;
  int chunk = 0;
  int slot = 0;
  bool operator==(const Action&) const = default;
};

// Of one (kind, chunk) the micro-batches come in increasing order, so gradients are always summed in the same order. On the last
// virtual stage a micro-batch's backward follows directly after its forward.
struct Schedule {
  std::vector<Action> actions;
  std::vector<int> slots;  // per chunk: how many are in use at most
};

// chunks > 1 needs stages > 1.
Schedule make_schedule(int stage, int stages, int micros, int chunks);

}  // namespace hlat
