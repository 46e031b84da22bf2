// Words for what ranks do, shared by messages and evidence.
#pragma once

#include <string>
#include <vector>

#include "flight/rank_view.h"
#include "supervise/wait_graph.h"

namespace hlat {

std::string ranks_text(const std::vector<int>& ranks);  // "rank 2", "ranks 0, 1, 3", "ranks 0 to 7"
std::string doing_text(const RankView& view);           // "in step 12, backward of micro-batch 1, op matmul"
std::string state_text(char process);                   // "stopped", "running", ...

// Who waits where, the most first: "3 ranks wait in dp all_reduce 1234 (ranks 0, 1, 3) for 9.6 s; ...".
std::string waiting_text(const std::vector<Wait>& waits);

}  // namespace hlat
