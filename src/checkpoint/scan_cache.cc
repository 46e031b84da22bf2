#include "checkpoint/scan_cache.h"

#include <algorithm>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/for_all.h"

namespace hlat {
namespace {

// Where a piece begins, or ends with negative bytes, among the global elements of a tensor.
struct Border {
  int32_t tensor;
  int64_t element;
  int64_t bytes;
};

// Bytes of the pieces around the element of a tensor that has most.
int64_t widest(const CheckpointIndex& index) {
  std::vector<Border> borders;
  for (const SavedFile& file : index.files)
    for (const Piece& p : file.pieces) {
      const auto bytes = static_cast<int64_t>(piece_bytes(p, index.tensors));
      borders.push_back({p.tensor, p.map.global(0), bytes});
      borders.push_back({p.tensor, p.map.global(p.count - 1) + 1, -bytes});
    }
  std::sort(borders.begin(), borders.end(), [](const Border& a, const Border& b) {
    return std::tie(a.tensor, a.element, a.bytes) < std::tie(b.tensor, b.element, b.bytes);
  });
  int64_t open = 0, most = 0;
  for (const Border& b : borders) most = std::max(most, open += b.bytes);
  return most;
}

}  // namespace

size_t scan_cache_bytes(const CheckpointIndex& index) {
  // Twice: a range of elements may end in the pieces that follow. And what threads read ahead of each other.
  const size_t wanted = 2 * static_cast<size_t>(widest(index)) + kMostScanThreads * kMaxPiece;
  return std::min(wanted, kMostScanCache);
}

std::unique_ptr<CheckpointReader> open_for_scan(const std::filesystem::path& checkpoint) {
  CheckpointIndex index = read_index(checkpoint);
  const size_t cache = scan_cache_bytes(index);
  return std::make_unique<CheckpointReader>(checkpoint, std::move(index), cache);
}

}  // namespace hlat
