#include "data/reader/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "base/error.h"
#include "base/format.h"

namespace hlat::reader {

bool CompressedInput::refill() {
  filled_ = file_.read(offset_, buffer_.data(), buffer_.size());
  offset_ += filled_;
  return filled_ > 0;
}

std::string lost_behind(uint64_t offset, uint64_t size) {
  if (offset >= size) return ": the file ends there, and does not say how much is missing";
  return fmt::format(": {} of its {} bytes ({:.1f}%) are lost", size - offset, size,
                     100.0 * static_cast<double>(size - offset) / static_cast<double>(size));
}

namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(const InputFile& file) : file_(file) {}
  size_t read(char* out, size_t bytes) override {
    const size_t n = file_.read(offset_, out, bytes);
    offset_ += n;
    return n;
  }
  uint64_t consumed() const override { return offset_; }

 private:
  const InputFile& file_;
  uint64_t offset_ = 0;
};

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(const InputFile& file) : input_(file) {
    if (inflateInit2(&z_, 16 + MAX_WBITS) != Z_OK) fail("cannot read {}: not enough memory", file.path());
  }
  ~GzipStream() override { inflateEnd(&z_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  size_t read(char* out, size_t bytes) override {
    z_.next_out = reinterpret_cast<Bytef*>(out);
    z_.avail_out = static_cast<uInt>(std::min<size_t>(bytes, 1 << 30));
    const size_t wanted = z_.avail_out;
    while (z_.avail_out > 0 && !done_) step();
    return wanted - z_.avail_out;
  }
  uint64_t consumed() const override { return input_.offset() - z_.avail_in; }

 private:
  // Decodes some, or goes to the next member, or ends.
  void step() {
    if (z_.avail_in == 0 && !refill()) return end(in_member_ ? "ends early" : "");
    if (!in_member_) return begin_member();
    const int status = inflate(&z_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      in_member_ = false;
      after_first_ = true;
      if (inflateReset(&z_) != Z_OK) end("cannot be read");
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      end("is damaged");
    }
  }

  // Zeros after a member are padding, as tapes have it; other bytes must be a member.
  void begin_member() {
    while (after_first_ && z_.avail_in > 0 && *z_.next_in == 0) {
      ++z_.next_in;
      --z_.avail_in;
    }
    in_member_ = z_.avail_in > 0;
  }

  bool refill() {
    if (!input_.refill()) return false;
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));  // zlib reads it only
    z_.avail_in = static_cast<uInt>(input_.filled());
    return true;
  }

  void end(const char* problem) {
    done_ = true;
    if (*problem) broken_ = fmt::format("the gzip data {} at byte {}{}", problem, consumed(), lost_behind(consumed(), input_.file_size()));
  }

  CompressedInput input_;
  z_stream z_{};
  bool in_member_ = false;
  bool after_first_ = false;
  bool done_ = false;
};

constexpr int kMaxWindowLog = 31;  // `zstd --long=31`; takes 2 GiB, and only such files do

class ZstdStream final : public ByteStream {
 public:
  explicit ZstdStream(const InputFile& file) : input_(file), z_(ZSTD_createDStream()) {
    if (!z_ || ZSTD_isError(ZSTD_DCtx_setParameter(z_.get(), ZSTD_d_windowLogMax, kMaxWindowLog)))
      fail("cannot read {}: not enough memory", file.path());
  }

  size_t read(char* out, size_t bytes) override {
    ZSTD_outBuffer output{out, bytes, 0};
    while (output.pos < bytes && !done_) step(output);
    return output.pos;
  }
  uint64_t consumed() const override { return input_.offset() - (in_.size - in_.pos); }

 private:
  void step(ZSTD_outBuffer& output) {
    if (in_.pos == in_.size && !pending_) {
      if (!input_.refill()) return end(in_frame_ ? "ends early" : "");
      in_ = {input_.data(), input_.filled(), 0};
    }
    if (!in_frame_ && in_.pos < in_.size) begin_frame();
    const size_t before = output.pos;
    const size_t status = ZSTD_decompressStream(z_.get(), &output, &in_);
    if (ZSTD_isError(status)) return end(ZSTD_getErrorName(status));
    in_frame_ = status != 0;
    frame_text_ += output.pos - before;
    // A full output may leave decoded bytes inside the decoder; ask again before reading on.
    pending_ = in_frame_ && output.pos == output.size && output.pos > before;
  }

  // A frame mostly says how much text it holds.
  void begin_frame() {
    const unsigned long long size = ZSTD_getFrameContentSize(input_.data() + in_.pos, in_.size - in_.pos);
    frame_size_ = size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ? 0 : size;
    frame_text_ = 0;
  }

  void end(const char* problem) {
    done_ = true;
    if (!*problem) return;
    broken_ = fmt::format("the zstd data is broken ({}) at byte {}", problem, consumed());
    if (in_frame_ && frame_size_ > frame_text_)
      broken_ += fmt::format(": {} of {} of text ({:.1f}%) are lost", format_bytes(frame_size_ - frame_text_), format_bytes(frame_size_),
                             100.0 * static_cast<double>(frame_size_ - frame_text_) / static_cast<double>(frame_size_));
    else
      broken_ += lost_behind(consumed(), input_.file_size());
  }

  struct Free {
    void operator()(ZSTD_DStream* z) const { ZSTD_freeDStream(z); }
  };
  CompressedInput input_;
  std::unique_ptr<ZSTD_DStream, Free> z_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  uint64_t frame_size_ = 0;  // text of the frame; 0: not known
  uint64_t frame_text_ = 0;  // of that decoded
  bool in_frame_ = false;
  bool pending_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> open_stream(const InputFile& file, Compression compression) {
  switch (compression) {
    case Compression::gzip: return std::make_unique<GzipStream>(file);
    case Compression::zstd: return std::make_unique<ZstdStream>(file);
    case Compression::none: break;
  }
  return std::make_unique<PlainStream>(file);
}

}  // namespace hlat::reader
