// The scan of a plain .jsonl file. The file is cut into ranges of bytes; a range has the lines that begin in it, so ranges
// can be scanned on their own. Memory: a buffer per thread, as long as the longest line at most.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"
#include "data/reader/json_line.h"
#include "data/reader/pipeline.h"
#include "data/reader/scan.h"

namespace hlat::reader {
namespace {

constexpr uint64_t kRange = 16 << 20;
constexpr size_t kChunk = 1 << 20;

// A window over the file that moves forward and grows when a line does not fit.
class Window {
 public:
  Window(const InputFile& file, uint64_t begin) : file_(file), begin_(begin) {
    grow(static_cast<size_t>(std::min<uint64_t>(kChunk, file.size() - begin)));
  }

  // The line that begins at `offset`, without its newline; nothing when it is longer than a document may be.
  std::optional<std::string_view> line(uint64_t offset) {
    size_t from = static_cast<size_t>(offset - begin_);
    size_t seen = 0;  // of the line, without a newline
    while (true) {
      const char* start = data_.get() + from;
      const size_t there = filled_ - from;
      const void* newline = std::memchr(start + seen, '\n', there - seen);
      const size_t length = newline ? static_cast<size_t>(static_cast<const char*>(newline) - start) : there;
      if (length > kMaxDocument) return std::nullopt;
      if (newline || begin_ + filled_ >= file_.size()) return std::string_view(start, length);
      seen = there;
      more(from);
      from = 0;
    }
  }

 private:
  // Drops what is before `from` and reads on.
  void more(size_t from) {
    std::memmove(data_.get(), data_.get() + from, filled_ - from);
    begin_ += from;
    filled_ -= from;
    if (capacity_ - filled_ < kChunk / 2)
      grow(std::min<size_t>(2 * capacity_, kMaxDocument + 2 * kChunk));
    else
      fill();
  }
  void grow(size_t capacity) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity + kJsonPadding);
    if (filled_ > 0) std::memcpy(larger.get(), data_.get(), filled_);
    data_ = std::move(larger);
    capacity_ = capacity;
    fill();
  }
  void fill() {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(capacity_ - filled_, file_.size() - begin_ - filled_));
    file_.read_exactly(begin_ + filled_, data_.get() + filled_, wanted);
    filled_ += wanted;
    std::memset(data_.get() + filled_, 0, kJsonPadding);
  }

  const InputFile& file_;
  uint64_t begin_;  // of the window in the file
  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t filled_ = 0;
};

// Where the first line that begins at or behind `offset` begins; the end of the range when there is none in it.
uint64_t first_line(const InputFile& file, uint64_t offset, uint64_t end) {
  if (offset == 0) return 0;
  std::vector<char> chunk(64 << 10);
  for (uint64_t at = offset - 1; at < end - 1;) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(chunk.size(), end - 1 - at));
    file.read_exactly(at, chunk.data(), wanted);
    if (const void* found = std::memchr(chunk.data(), '\n', wanted)) return at + (static_cast<const char*>(found) - chunk.data()) + 1;
    at += wanted;
  }
  return end;
}

ScanPart scan_range(const InputFile& file, const std::string& field, uint64_t begin) {
  const uint64_t end = std::min(begin + kRange, file.size());
  ScanPart part;
  JsonLineParser parser;
  uint64_t at = first_line(file, begin, end);
  if (at >= end) return part;
  Window window(file, at);
  while (at < end) {
    const std::optional<std::string_view> line = window.line(at);
    ++part.lines;
    if (!line) {
      part.add_bad(part.lines, fmt::format("longer than {} bytes", kMaxDocument));
      break;  // it reaches beyond the range
    }
    const JsonText found = parser.parse(*line, field);
    if (found.kind == JsonText::Kind::text) part.add(at, line->size(), found.text);
    if (found.kind == JsonText::Kind::bad) part.add_bad(part.lines, found.reason);
    at += line->size() + 1;
  }
  return part;
}

}  // namespace

void scan_jsonl(const ScanJob& job) {
  job.index.set_layout(Layout::json_lines);
  uint64_t at = 0;
  const auto next = [&]() -> std::optional<uint64_t> {
    if (at >= job.file.size()) return std::nullopt;
    const uint64_t begin = at;
    at += kRange;
    job.advance(begin);
    return begin;
  };
  const auto work = [&](uint64_t begin) { return scan_range(job.file, job.options.field, begin); };
  const auto take = [&](const ScanPart& part) { take_part(job, part); };
  Pipeline(next, work, take).run(job.options.threads);
  job.advance(job.file.size());
}

}  // namespace hlat::reader
