// Small values of the host, exchanged by the ranks of any group; O(log p) messages for each of p ranks. Collective.
#pragma once

#include <type_traits>
#include <vector>

#include "comm/comm.h"

namespace hlat {

// Every rank's value, in rank order. A null group has no other ranks: theirs are T{}.
template <class T>
std::vector<T> all_gather_values(Comm& comm, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<size_t>(comm.size()));
  all[static_cast<size_t>(comm.rank())] = own;
  comm.host().all_gather_bytes(all.data(), sizeof(T));
  return all;
}

// The root's value. The others' are not looked at.
template <class T>
T broadcast_value(Comm& comm, T value, int root) {
  static_assert(std::is_trivially_copyable_v<T>);
  comm.host().broadcast_bytes(&value, sizeof(T), root);
  return value;
}

}  // namespace hlat
