// How many ranks run, and on which hosts, when some hosts or slots are gone. Pure: the launcher asks before each start.
//
// tp and pp are those of the config; dp is the largest for which the ranks fit the slots and the rules of the config hold (the batch is
// a multiple of micro_batch x dp). Global batch and data order do not depend on dp. With parallel.dp in the config, or launch.elastic off,
// it is that many or none. Hosts are used in their order, and the last launch.spares of them only for what others lack. A tensor
// parallel group stays within a host, since it talks more than all others, unless no mesh is possible otherwise, or launch.ranks asks for
// more ranks than the hosts of the run can take that way.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "supervise/hosts.h"

namespace hlat {

struct MeshChoice {
  int dp = 0;  // 0: nothing is possible, and `words` tell what is missing
  int tp = 1, pp = 1;
  std::vector<Host> hosts;  // in the order of the ranks, `slots` the ranks it runs; the others are not used
  std::vector<Host> idle;   // slots that live and run no rank, those of spares too
  std::string words;        // for the log: "3 of 4 ranks: dp 3; idle: 1 slot on node-b"

  bool possible() const { return dp > 0; }
  int ranks() const { return tp * pp * dp; }
};

// `hosts`: all that the run was given, spares last. `living`: by name, those that can be used now with the slots that are left.
// least_dp: fewer replicas are known not to work, and are not possible. UsageError when not even all hosts together are enough: waiting
// would not help.
MeshChoice choose_mesh(const Config& config, const std::vector<Host>& hosts, const std::vector<Host>& living, int least_dp = 1);

}  // namespace hlat
