#include "data/reader/blocks.h"

#include <algorithm>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/indexed_file.h"
#include "data/reader/utf8.h"

namespace hlat::reader {

BlockPacker::BlockPacker(ScanPart& part) : part_(part), z_(ZSTD_createCCtx()) {
  if (!z_ || ZSTD_isError(ZSTD_CCtx_setParameter(z_.get(), ZSTD_c_compressionLevel, 1)) ||
      ZSTD_isError(ZSTD_CCtx_setParameter(z_.get(), ZSTD_c_checksumFlag, 1)))
    fail("not enough memory to compress texts");
}

void BlockPacker::add(std::string_view text) {
  part_.add(text_, 0, text);
  text_ += text.size();
  if (pending_.size() + text.size() > kBlockText) flush(pending_);
  for (; text.size() > kBlockText; text.remove_prefix(kBlockText)) flush(text.substr(0, kBlockText));
  pending_ += text;
}

void BlockPacker::flush(std::string_view text) {
  if (text.empty()) return;
  std::string& data = part_.block_data;
  const size_t begin = data.size();
  data.resize(begin + ZSTD_compressBound(text.size()));
  const size_t n = ZSTD_compress2(z_.get(), data.data() + begin, data.size() - begin, text.data(), text.size());
  if (ZSTD_isError(n)) fail("cannot compress texts: {}", ZSTD_getErrorName(n));
  data.resize(begin + n);
  const uint64_t before = part_.blocks.empty() ? 0 : part_.blocks.back().text + part_.blocks.back().length;
  part_.blocks.push_back(
      {.text = before, .offset = begin, .stored = static_cast<uint32_t>(n), .length = static_cast<uint32_t>(text.size())});
  if (text.data() == pending_.data()) pending_.clear();
}

namespace {

// The last block that a thread decoded. A key is of the content: two files with equal keys have equal blocks.
struct LastBlock {
  uint64_t key = 0;
  std::string stored;
  std::string text;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> z{ZSTD_createDCtx(), &ZSTD_freeDCtx};
};

class BlocksFile final : public IndexedFile {
 public:
  BlocksFile(InputFile file, std::unique_ptr<Index> index) : IndexedFile(std::move(file), std::move(index)) {
    this->file().release();  // only its name is watched from here
  }

  void text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const override {
    watch();
    const IndexEntry e = entry(document);
    begin = std::min<uint64_t>(begin, e.length);
    copy(e.offset + begin, std::min(bytes, e.length - begin), out);
    if (begin + out.size() < e.length) out.resize(out.size() - unfinished_bytes(out));
  }

 protected:
  void fetch(const IndexEntry& entry, std::string& out) const override { copy(entry.offset, entry.length, out); }

 private:
  void copy(uint64_t offset, uint64_t bytes, std::string& out) const {
    thread_local std::vector<IndexBlock> blocks;
    out.clear();
    if (bytes == 0) return;
    index().blocks_of(offset, bytes, blocks);
    for (const IndexBlock& block : blocks) {
      const uint64_t at = offset + out.size();
      if (at < block.text || at >= block.text + block.length) fail_changed();
      out.append(decode(block), at - block.text, bytes - out.size());
    }
    if (out.size() < bytes) fail_changed();
  }

  const std::string& decode(const IndexBlock& block) const {
    thread_local LastBlock last;
    const uint64_t key = hash_pair(hash_pair(index().header().body_hash, index().header().digest), block.offset);
    if (last.key == key && !last.text.empty()) return last.text;
    last.text.resize(block.length);
    last.key = 0;
    index().read_block(block, last.stored);
    const size_t n = ZSTD_decompressDCtx(last.z.get(), last.text.data(), last.text.size(), last.stored.data(), last.stored.size());
    if (n != block.length) fail("the index {} of {} is damaged at byte {}: remove it", index().path(), file().path(), block.offset);
    last.key = key;
    return last.text;
  }
};

}  // namespace

std::unique_ptr<DocumentFile> make_blocks(InputFile file, std::unique_ptr<Index> index) {
  return std::make_unique<BlocksFile>(std::move(file), std::move(index));
}

}  // namespace hlat::reader
