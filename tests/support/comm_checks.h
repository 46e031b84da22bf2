// Properties every transport must have, as calls that all ranks of a group make together. Inputs are functions of rank
// and element, so each rank works out alone, with a scalar loop in rank order, what every rank must have, bit by bit.
// A difference is an Error: the same code serves ranks that are threads and ranks that are processes.
#pragma once

#include "comm/comm.h"

namespace hlat::test {

// The first two need a reserved group; check_all reserves it, for its own length.
void check_sums(Comm& comm);      // all_reduce, reduce_scatter: types, lengths, in place and not
void check_gathers(Comm& comm);   // all_gather, broadcast from every root, of tensors and of host values
void check_messages(Comm& comm);  // tags out of order, many messages on one tag, rings, large and empty ones
void check_split(Comm& comm);     // sub-groups, reversed order, groups of one; parents and children side by side
void check_traffic(Comm& comm);   // what a null group counts is what this one counts
void check_all(Comm& comm);       // all of it

// Room of a group of this size, as the dry run finds it.
size_t staging_bytes(int size);

}  // namespace hlat::test
