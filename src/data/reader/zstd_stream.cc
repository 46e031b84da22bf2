#include <zstd.h>

#include "base/error.h"
#include "data/reader/byte_stream.h"

namespace hlat::reader {
namespace {

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

 private:
  void step(ZSTD_outBuffer& output) {
    if (in_.pos == in_.size && !pending_) {
      if (!input_.refill()) return end(in_frame_ ? "ends early" : "");
      in_ = {input_.data(), input_.filled(), 0};
    }
    const size_t before = output.pos;
    const size_t status = ZSTD_decompressStream(z_.get(), &output, &in_);
    if (ZSTD_isError(status)) return end(ZSTD_getErrorName(status));
    in_frame_ = status != 0;
    // A full output may leave decoded bytes inside the decoder; ask again before reading on.
    pending_ = in_frame_ && output.pos == output.size && output.pos > before;
  }

  void end(const char* problem) {
    done_ = true;
    if (*problem)
      broken_ =
          fmt::format("the zstd data is broken ({}) at byte {} of {}", problem, input_.offset() - (in_.size - in_.pos), input_.file_size());
  }

  struct Free {
    void operator()(ZSTD_DStream* z) const { ZSTD_freeDStream(z); }
  };
  CompressedInput input_;
  std::unique_ptr<ZSTD_DStream, Free> z_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool in_frame_ = false;
  bool pending_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> open_zstd(const InputFile& file) { return std::make_unique<ZstdStream>(file); }

}  // namespace hlat::reader
