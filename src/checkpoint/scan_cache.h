// How much cache a CheckpointReader needs so that tensors read from their beginning to their end have each piece read once. A tensor that
// tensor parallel ranks saved lies in pieces side by side, each with some columns of the same rows: all of them are in use at a time.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint_reader.h"

namespace hlat {

inline constexpr size_t kMostScanCache = size_t{256} << 20;  // enough for 32 tensor parallel ranks; with more, pieces are read again

size_t scan_cache_bytes(const CheckpointIndex& index);

std::unique_ptr<CheckpointReader> open_for_scan(const std::filesystem::path& checkpoint);

}  // namespace hlat
