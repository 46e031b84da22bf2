// The decoded bytes of a compressed file, front to back. Damage ends the stream: what came before is good, broken() says
// what happened.
#pragma once

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

 protected:
  std::string broken_;
};

// Several members of gzip, or several frames of zstd, one after the other, are one stream.
std::unique_ptr<ByteStream> open_gzip(const InputFile& file);
std::unique_ptr<ByteStream> open_zstd(const InputFile& file);

// The compressed bytes of a file in pieces, for decoders.
class CompressedInput {
 public:
  explicit CompressedInput(const InputFile& file) : file_(file), buffer_(256 << 10) {}
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
