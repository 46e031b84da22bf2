// What a save costs the training that goes on meanwhile, and how fast it is: blocks of steps without and with a save in turns, in one
// process, and plain sequential writing of as many bytes to the same disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/config.h"
#include "model/rank_plan.h"
#include "ops/device.h"

namespace hlat {

struct SaveBenchOptions {
  int64_t saves = 5;
  int64_t steps = 0;          // of a block; 0: as many as a save takes, and one more
  std::filesystem::path dir;  // checkpoints are written to a folder of their own in it, and removed
};

// Seconds are medians, of rank 0.
struct SaveBench {
  std::string machine;
  MeshShape mesh;
  SaveBenchOptions options;  // with the steps that were chosen
  uint64_t bytes = 0;        // of a checkpoint
  uint64_t rank_bytes = 0, staging_bytes = 0;
  double step_s = 0;          // without a save
  double added_s = 0;         // to a block of steps by a save
  double save_s = 0;          // from begin to commit, with training
  double alone_s = 0;         // the same with no training meanwhile
  double plain_s = 0;         // sequential writing and fsync of the same bytes
  double copy_s = 0;          // of a save with training, until all state was staged
  double update_wait_s = 0;   // of a save with training
  int64_t saves_in_time = 0;  // that ended within their block

  double added_share() const { return added_s / (step_s * static_cast<double>(options.steps)); }
  double share_of_plain(double seconds) const { return plain_s / seconds; }
  std::string limit() const;  // which part limits the rate of a save
};

// On every rank of `world`, which the config's mesh must fit; local_ranks: of those, the ones on this host.
SaveBench bench_save(const Config& config, Backend& backend, Comm& world, int local_ranks, const SaveBenchOptions& options);
std::string save_bench_text(const SaveBench& bench);
nlohmann::ordered_json save_bench_json(const SaveBench& bench);

}  // namespace hlat
