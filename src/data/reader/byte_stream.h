// The decoded bytes of a file, front to back. Damage ends the stream: what came before is good, broken() says what happened and how
// much of the file is lost by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "data/reader/input_file.h"

namespace hlat::reader {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` with up to `bytes`; 0 at the end, and where the data is broken.
  virtual size_t read(char* out, size_t bytes) = 0;
  const std::string& broken() const { return broken_; }
  virtual uint64_t consumed() const = 0;  // bytes of the file that were read

 protected:
  std::string broken_;
};

enum class Compression : uint8_t { none, gzip, zstd };

// Several members of gzip, or several frames of zstd, one after the other, are one stream.
std::unique_ptr<ByteStream> open_stream(const InputFile& file, Compression compression);

// ": N of M bytes (x%) of the file are lost", where it can be read up to `offset`.
std::string lost_behind(uint64_t offset, uint64_t size);

// The compressed bytes of a file in pieces, for decoders.
class CompressedInput {
 public:
  explicit CompressedInput(const InputFile& file) : file_(file), buffer_(std::min<uint64_t>(256 << 10, file.size() + 1)) {}
  bool refill();  // false at the end of the file
  const char* data() const { return buffer_.data(); }
  size_t filled() const { return filled_; }
  uint64_t offset() const { return offset_; }  // of the buffer's end in the file
  uint64_t file_size() const { return file_.size(); }

 private:
  const InputFile& file_;
  std::vector<char> buffer_;
  size_t filled_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace hlat::reader
