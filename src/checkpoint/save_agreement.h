// What ranks tell each other about a save, in rounds: every rank says where it stands, and hears the same answer as all others. Statuses
// go up a tree of ranks and the answer comes down one, so a rank sends and receives few messages however many ranks there are. A peer that
// writes to a slow disk still takes part in a round every few seconds: only one that is gone is silent.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/comm.h"

namespace hlat {

// Of one rank, or of all together.
struct SaveStatus {
  static constexpr int32_t kNobody = -1;

  int32_t done = 0;               // with what the save does now; of all: each of them is
  int32_t failed_rank = kNobody;  // the first that has a problem
  int32_t disk_full = 0;          // on any rank
  int32_t reserved = 0;
  uint64_t bytes = 0;            // of state
  uint64_t room = 0;             // that it takes on the disk
  std::array<char, 480> text{};  // of failed_rank; cut where it is longer

  bool failed() const { return failed_rank != kNobody; }
  void set_problem(int rank, std::string_view problem, bool disk_is_full);
  std::string problem() const { return text.data(); }
};

// Collective. comm: null with one rank.
SaveStatus agree(Comm* comm, const SaveStatus& own);

}  // namespace hlat
