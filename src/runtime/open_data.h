// The data of one rank. Only ranks that read batches open any. Of those on a host the first hashes and walks the document indices and tells
// the others what it found; on the whole run rank 0 comes first, so that the others find the indices that it made.
#pragma once

#include <memory>
#include <vector>

#include "comm/comm.h"
#include "data/dataset.h"

namespace hlat {

// Collective over `world`. on_host: the ranks on this host, in order. Null on a rank that reads no batches.
// `observer` is told how far the scan of files without an index is, on rank 0.
std::unique_ptr<Dataset> open_data(const Config& config, Comm& world, const std::vector<int>& on_host, int threads,
                                   ScanObserver observer = {});

// `config` with train.steps known where train.epochs gives the length of the run: rank 0, which reads batches, counts the tokens of the
// documents that are trained on. Collective over `world`.
Config with_steps(Config config, const Dataset* data, Comm& world, int threads);

}  // namespace hlat
