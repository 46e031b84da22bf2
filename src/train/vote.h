// What a rank says at a step boundary, and what all have said.
#pragma once

#include "parallel/mesh.h"
#include "train/alarm_watch.h"

namespace hlat {

struct Vote {
  int signal = 0;  // that wants the run to end
  int busy = 0;    // a save is under way
  int due = 0;     // RunSaves::Due
  AlarmVote alarm = {};
};

// The largest of each over the ranks of the mesh, and the alarm that ends the run. Collective.
Vote agree(const Mesh& mesh, Vote vote);

}  // namespace hlat
