// Bytes as the index of a checkpoint: as they are, and with a right checksum, so that what lies behind it is reached. An index that is
// accepted is whole: its sizes can be added up, and it is the same when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "checkpoint/checksum.h"
#include "checkpoint/index.h"

namespace {

void parse(const std::string& text) {
  hlat::CheckpointIndex index;
  try {
    index = hlat::CheckpointIndex::parse(text);
  } catch (const hlat::Error&) {
    return;
  }
  uint64_t bytes = 0;
  for (const hlat::SavedFile& file : index.files) {
    bytes += file.header_bytes;
    for (const hlat::Piece& piece : file.pieces) {
      bytes += hlat::piece_bytes(piece, index.tensors);
      const hlat::SavedTensor& tensor = index.tensors[static_cast<size_t>(piece.tensor)];
      if (piece.map.global(0) < 0 || piece.map.global(piece.count - 1) >= tensor.shape.numel()) std::abort();
      if (hlat::piece_name(piece, index.tensors).empty()) std::abort();
    }
  }
  if (bytes != index.bytes()) std::abort();
  const std::string saved = index.save();
  if (hlat::CheckpointIndex::parse(saved).save() != saved) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  parse(text);
  // The seeds end where the checksum begins.
  parse(text + ",\n\"checksum\":\"" + hlat::checksum_text(hlat::checksum(text)) + "\"}\n");
  return 0;
}
