// One file of a checkpoint as it is written: the pieces are known beforehand, so the header is too; bytes then come in the file's order,
// and checksums are taken on the way. Whoever saves the state of a rank, and the tools that make checkpoints, write with this.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checksum.h"
#include "checkpoint/index.h"
#include "checkpoint/safetensors.h"

namespace hlat {

// Elements of a tensor that one file is to have, cut into pieces: runs of the map longer than kMaxPiece become several.
void add_pieces(std::vector<Piece>& pieces, int32_t tensor, const SavedTensor& of, const ElementMap& map, int64_t count);

// What the header of a file of these pieces says. run and step are in its metadata, so that a file of another checkpoint is told from this.
SafetensorsHeader piece_header(const std::vector<SavedTensor>& tensors, const std::vector<Piece>& pieces, const std::string& run,
                               int64_t step);

class PieceFile {
 public:
  // Creates the file and writes its header.
  PieceFile(const std::filesystem::path& path, const std::vector<SavedTensor>& tensors, std::vector<Piece> pieces, const std::string& run,
            int64_t step);
  ~PieceFile();  // closes; a file that was not finished is left as it is
  PieceFile(const PieceFile&) = delete;
  PieceFile& operator=(const PieceFile&) = delete;

  uint64_t bytes() const { return bytes_; }  // of all pieces
  // The next bytes of the pieces, whatever their borders. Handed to the system on return, and its writing to the disk begins.
  void write(const void* data, size_t bytes);
  // All bytes are there: fsync. The pieces now have their checksums.
  SavedFile finish();

 private:
  void put(const void* data, size_t bytes, uint64_t offset);

  std::filesystem::path path_;
  std::vector<uint64_t> sizes_;  // of the pieces
  SavedFile file_;
  RunningChecksum running_;  // of the piece under way
  int fd_ = -1;
  uint64_t bytes_ = 0, written_ = 0;
  size_t piece_ = 0;       // under way
  uint64_t of_piece_ = 0;  // bytes of it that came
};

}  // namespace hlat
