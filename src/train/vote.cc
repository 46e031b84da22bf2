#include "train/vote.h"

#include <algorithm>

#include "comm/host_exchange.h"

namespace hlat {

Vote agree(const Mesh& mesh, Vote vote) {
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp})
    for (const Vote& other : all_gather_values(mesh.along(axis), vote)) {
      vote.signal = std::max(vote.signal, other.signal);
      vote.busy = std::max(vote.busy, other.busy);
      vote.due = std::max(vote.due, other.due);
      if (other.alarm.ends()) vote.alarm = other.alarm;
    }
  return vote;
}

}  // namespace hlat
