// Texts of files that cannot be read at random, kept in the index as zstd blocks of some texts each. A text that fits
// one block lies in one, so reading it costs one block; a longer one has blocks of its own.
#pragma once

#include <zstd.h>

#include <memory>
#include <string>
#include <string_view>

#include "data/reader/scan_part.h"

namespace hlat::reader {

// Adds documents with their texts to a part. finish() after the last.
class BlockPacker {
 public:
  explicit BlockPacker(ScanPart& part);
  void add(std::string_view text);
  void finish() { flush(pending_); }

 private:
  void flush(std::string_view text);

  struct Free {
    void operator()(ZSTD_CCtx* z) const { ZSTD_freeCCtx(z); }
  };
  ScanPart& part_;
  std::unique_ptr<ZSTD_CCtx, Free> z_;
  std::string pending_;
  uint64_t text_ = 0;  // added so far
};

}  // namespace hlat::reader
