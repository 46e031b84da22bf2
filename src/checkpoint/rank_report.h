// What a rank has written, as it tells rank 0, and the index that rank 0 makes of all of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/index.h"
#include "comm/comm.h"

namespace hlat {

struct RankReport {
  std::vector<SavedTensor> tensors;  // the file's pieces name them by number
  std::optional<SavedFile> file;     // none: the rank has nothing to save
  std::string record;                // SaveRequest::own_record

  std::string pack() const;
  static RankReport unpack(std::string_view text);  // FaultError: not what pack made
};

// All ranks' on rank 0, by rank; none on the others. Collective. comm: null with one rank.
std::vector<RankReport> gather_reports(Comm* comm, RankReport own);

// Adds tensors and files to an index that has neither. Tensors are in the order of their names, in which numbers count as such, and of
// their kinds: the same for every layout. Error when ranks contradict each other or a part of a tensor is in no file.
void add_files(CheckpointIndex& index, std::vector<RankReport>& reports);

}  // namespace hlat
