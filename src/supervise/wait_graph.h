// Who waits for whom, from what all ranks were doing at one moment. A rank inside operation n of a group waits for
//
//   late      members that have not entered n: what it needs, they have not sent
//   inside    a member that is inside n too: the peer that the call names, or one that is stopped or gone
//   message   the peer of a send or recv
//   lost      a member that has left n, when all have entered it: its message did not come
//
// An operation that a queue runs behind the computation is no wait of the rank, as long as nobody waits for the queue. Where calls only put
// work on a stream, a rank that reads results back waits for members that have put less there.
//
// A chain ends at a rank that waits for nobody, or is stopped, gone or not there: that one holds up the others. Chains that end nowhere
// run into a cycle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/comm.h"
#include "flight/rank_view.h"

namespace hlat {

using RankViews = std::vector<std::optional<RankView>>;  // by rank; nothing: not there yet, or its host is gone

enum class WaitReason : uint8_t { late, inside, message, lost };

struct Wait {
  int from = 0, to = 0;  // ranks
  WaitReason reason = WaitReason::late;
  std::string group;
  CommKind kind = CommKind::barrier;
  bool known_kind = true;      // false: of an operation on a stream that is not the latest
  uint64_t number = 0;         // of the group's operation; 0: a message has none
  bool in_background = false;  // the computation of `from` goes on meanwhile
  double since_s = 0;          // how long `from` has been in it
};

struct WaitGraph {
  std::vector<Wait> waits;               // by `from`
  std::vector<int> ends;                 // ranks at which chains end, or could: nobody need wait for them
  std::vector<int> culprits;             // of those, the ones that others wait for, directly or through others
  std::vector<std::vector<int>> cycles;  // sets of ranks that wait for each other and for nobody else

  bool blocked(int rank) const;                  // it waits, in the foreground
  std::vector<int> waiting_for(int rank) const;  // all that do, directly or through others
  // Of a cycle, the wait for a message that did not come, as far as can be told; null: nothing tells which.
  const Wait* lost_in(const std::vector<int>& cycle, const RankViews& views) const;
};

WaitGraph wait_graph(const RankViews& views);

std::string operation_name(const Wait& wait);  // "dp all_reduce 1234"; "pp recv from rank 2"

}  // namespace hlat
