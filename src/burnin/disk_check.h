// The disk where checkpoints go, from one rank of each host: a file is written, put on the disk, read back and compared; small records are
// put on the disk one by one. The file has no name while it is used, so that nothing stays behind whatever ends the process.
#pragma once

#include <filesystem>

#include "burnin/check_run.h"

namespace hlat {

struct DiskMeasured {
  bool measured = false;
  std::string folder = {};
  double write = 0, read = 0;           // bytes per second; written: with the time that fsync took
  double sync_s = 0, worst_sync_s = 0;  // of a small record
  std::string words = {};               // what is wrong with it
};
// full: the disk is to behave as one without room.
DiskMeasured measure_disk(const std::filesystem::path& folder, size_t bytes, int records, bool full);

PartReport check_disk(const CheckRun& run);

}  // namespace hlat
