#include "checkpoint/checkpoint_writer.h"

#include <algorithm>

#include "checkpoint/piece_file.h"

namespace hlat {

namespace {

// Consecutive pieces for each file, whole tensors where they fit.
std::vector<std::vector<Piece>> share_out(const std::vector<SavedTensor>& tensors, uint64_t max_file_bytes) {
  std::vector<std::vector<Piece>> files(1);
  uint64_t bytes = 0;
  for (size_t t = 0; t < tensors.size(); ++t) {
    std::vector<Piece> pieces;
    add_pieces(pieces, static_cast<int32_t>(t), tensors[t], {}, tensors[t].shape.numel());
    for (const Piece& p : pieces) {
      const uint64_t n = piece_bytes(p, tensors);
      if (bytes > 0 && bytes + n > max_file_bytes) files.emplace_back(), bytes = 0;
      files.back().push_back(p);
      bytes += n;
    }
  }
  return files;
}

}  // namespace

std::filesystem::path write_checkpoint(const std::filesystem::path& parent, CheckpointIndex index, const TensorContent& content,
                                       uint64_t max_file_bytes, const std::function<void(uint64_t)>& done) {
  NewCheckpoint checkpoint(parent, index.step);
  try {
    std::vector<std::byte> buffer(kMaxPiece);
    for (std::vector<Piece>& pieces : share_out(index.tensors, max_file_bytes)) {
      const auto name = fmt::format("part_{:05}.safetensors", index.files.size());
      PieceFile file(NewCheckpoint::folder_of(parent, index.step) / name, index.tensors, pieces, index.run, index.step);
      for (const Piece& p : pieces) {
        const uint64_t bytes = piece_bytes(p, index.tensors);
        content(p.tensor, p.map.first, p.count, buffer.data());
        file.write(buffer.data(), bytes);
        if (done) done(bytes);
      }
      index.files.push_back(file.finish());
    }
    checkpoint.commit(index);
  } catch (...) {
    checkpoint.discard();
    throw;
  }
  return checkpoint_path(parent, index.step);
}

}  // namespace hlat
