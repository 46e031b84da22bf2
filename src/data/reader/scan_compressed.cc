// The scan of .jsonl.gz and .jsonl.zst: one thread at a time decodes a batch of whole lines, the threads parse batches and
// compress their texts again into blocks that can be read at random.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "data/reader/blocks.h"
#include "data/reader/byte_stream.h"
#include "data/reader/json_line.h"
#include "data/reader/pipeline.h"
#include "data/reader/scan.h"

namespace hlat::reader {
namespace {

constexpr size_t kBatch = 4 << 20;
constexpr size_t kStep = 1 << 20;

struct LineBatch {
  std::string lines;
  std::string broken;     // not empty: the data ends here, in the middle of the last line
  bool too_long = false;  // one line that was passed over
};

class LineBatches {
 public:
  explicit LineBatches(ByteStream& stream) : stream_(stream) {}

  std::optional<LineBatch> next() {
    if (ended_) return std::nullopt;
    LineBatch batch{.lines = std::move(rest_), .broken = {}};
    rest_.clear();
    size_t end = 0;  // behind the last newline
    while (!ended_ && (batch.lines.size() < kBatch || end == 0)) {
      const size_t before = batch.lines.size();
      read_step(batch.lines);
      const void* newline = ::memrchr(batch.lines.data() + before, '\n', batch.lines.size() - before);
      if (newline) end = static_cast<size_t>(static_cast<const char*>(newline) - batch.lines.data()) + 1;
      if (end == 0 && batch.lines.size() > kMaxDocument) return pass_over_line();
    }
    if (ended_) {
      batch.broken = stream_.broken();
    } else {
      rest_ = batch.lines.substr(end);
      batch.lines.resize(end);
    }
    batch.lines.append(kJsonPadding, '\0');
    return batch;
  }

 private:
  void read_step(std::string& to) {
    const size_t before = to.size();
    to.resize(before + kStep);
    const size_t n = stream_.read(to.data() + before, kStep);
    to.resize(before + n);
    ended_ = n == 0;
  }
  LineBatch pass_over_line() {
    std::string step;
    while (!ended_) {
      step.clear();
      read_step(step);
      const size_t newline = step.find('\n');
      if (newline == std::string::npos) continue;
      rest_ = step.substr(newline + 1);
      break;
    }
    return {.lines = {}, .broken = ended_ ? stream_.broken() : "", .too_long = true};
  }

  ByteStream& stream_;
  std::string rest_;  // the begin of a line
  bool ended_ = false;
};

ScanPart scan_batch(const LineBatch& batch, const std::string& field) {
  ScanPart part;
  if (batch.too_long) part.add_bad(++part.lines, fmt::format("longer than {} bytes", kMaxDocument));
  JsonLineParser parser;
  BlockPacker packer(part);
  std::string_view rest = batch.lines;
  if (!rest.empty()) rest.remove_suffix(kJsonPadding);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const bool cut = end == rest.size() && !batch.broken.empty();
    const JsonText found = parser.parse(rest.substr(0, end), field);
    ++part.lines;
    if (found.kind == JsonText::Kind::text) packer.add(found.text);
    if (found.kind == JsonText::Kind::bad && !cut) part.add_bad(part.lines, found.reason);  // a cut line is the break
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  packer.finish();
  if (!batch.broken.empty()) part.add_bad(std::max<uint64_t>(part.lines, 1), batch.broken);
  return part;
}

void scan_stream(const ScanJob& job, ByteStream& stream) {
  job.index.set_layout(Layout::blocks);
  LineBatches batches(stream);
  const auto next = [&] { return batches.next(); };
  const auto work = [&](const LineBatch& batch) { return scan_batch(batch, job.options.field); };
  const auto take = [&](const ScanPart& part) { take_part(job, part); };
  Pipeline(next, work, take).run(job.options.threads);
}

}  // namespace

void scan_jsonl_gzip(const ScanJob& job) { scan_stream(job, *open_gzip(job.file)); }
void scan_jsonl_zstd(const ScanJob& job) { scan_stream(job, *open_zstd(job.file)); }

}  // namespace hlat::reader
