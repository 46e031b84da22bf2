// The time of a collective from the links of a machine and the place of a group. With n ranks, B bytes of the whole tensor, g nodes with l
// ranks of the group each, a node's network shared by s groups (bw: the slower of the node's link and network / s), one pass of
//
//   ring          (n-1)/n B / bw + (n-1) steps of latency
//   levels        (l-1)/l B / node + (g-1)/g B / (network / s), with (l-1) and (g-1) steps: fewer steps, but one level after the other
//   tree          B / bw + log2 steps
//
// A sum that all ranks get takes two passes, a reduce-scatter or an all-gather one.
#pragma once

#include <optional>

#include "comm/comm.h"
#include "plan/group_place.h"
#include "plan/machine.h"

namespace hlat {

// From the measured rows for a group of this many ranks on one node: between rows along straight lines in the logarithms, beyond the
// largest in proportion to the bytes. nullopt: there are none.
std::optional<double> measured_collective(const Machine& m, CommKind kind, double bytes, const GroupPlace& g);

// Of ranks with a device each. A ring is the faster of ring and levels, as libraries choose.
double device_collective(const Machine& m, CommKind kind, double bytes, const GroupPlace& g);

// Of ranks on host cores: everybody sends to everybody what is theirs, sums are taken in rank order (comm/comm_messages.cc). Time of a
// core.
double host_collective(const Machine& m, CommKind kind, double bytes, const GroupPlace& g);

}  // namespace hlat
