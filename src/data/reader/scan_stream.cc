// The scan of files that are read front to back: one thread at a time decodes a batch of whole records, the threads parse batches. Texts
// of compressed files are compressed again into blocks that can be read at random; of plain files the index says where they stand.
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "data/reader/blocks.h"
#include "data/reader/byte_stream.h"
#include "data/reader/json_line.h"
#include "data/reader/pipeline.h"
#include "data/reader/records.h"
#include "data/reader/scan.h"

namespace hlat::reader {
namespace {

constexpr size_t kBatch = 4 << 20;
constexpr size_t kStep = 1 << 20;

struct RecordBatch {
  std::string data;       // whole records, then padding
  uint64_t begin = 0;     // in the stream
  std::string broken;     // not empty: the data ends here, in the middle of the last record
  size_t cut = 0;         // bytes of that record
  bool too_long = false;  // one record that was passed over
  std::string_view records() const {
    return data.empty() ? std::string_view() : std::string_view(data).substr(0, data.size() - kJsonPadding - cut);
  }
};

class RecordBatches {
 public:
  RecordBatches(ByteStream& stream, Records& records) : stream_(stream), records_(records) {}

  std::optional<RecordBatch> next() {
    if (ended_) return std::nullopt;
    RecordBatch batch{.data = std::move(rest_), .begin = offset_, .broken = {}};
    rest_.clear();
    size_t end = 0;  // behind the last whole record
    size_t seen = std::exchange(seen_, 0);
    while (!ended_ && (batch.data.size() < kBatch || end == 0)) {
      read_step(batch.data);
      if (const size_t found = records_.whole(batch.data, seen); found > 0) end = found;
      seen = batch.data.size();
      if (end == 0 && batch.data.size() > kMaxDocument + kStep) return too_long(batch);
    }
    if (ended_) {
      batch.broken = stream_.broken().empty() ? records_.unfinished() : stream_.broken();
      if (!batch.broken.empty()) batch.cut = batch.data.size() - end;
    } else {
      rest_ = batch.data.substr(end);
      seen_ = rest_.size();
      batch.data.resize(end);
    }
    offset_ += batch.data.size();
    batch.data.append(kJsonPadding, '\0');
    return batch;
  }

 private:
  void read_step(std::string& to) {
    const size_t before = to.size();
    to.resize(before + step_);
    const size_t n = stream_.read(to.data() + before, step_);
    to.resize(before + n);
    ended_ = n == 0;
    step_ = std::min(2 * step_, kStep);
  }
  RecordBatch too_long(const RecordBatch& begun) {
    if (!records_.lines()) {
      ended_ = true;
      return {.data = {}, .begin = 0, .broken = fmt::format("no end of the document within {} bytes", kMaxDocument)};
    }
    offset_ += begun.data.size();
    std::string step;
    while (!ended_) {
      step.clear();
      read_step(step);
      const size_t newline = step.find('\n');
      offset_ += std::min(newline, step.size());
      if (newline == std::string::npos) continue;
      ++offset_;
      rest_ = step.substr(newline + 1);
      break;
    }
    return {.data = {}, .begin = 0, .broken = ended_ ? stream_.broken() : "", .too_long = true};
  }

  ByteStream& stream_;
  Records& records_;
  std::string rest_;  // the begin of a record; behind one that was passed over, anything
  size_t seen_ = 0;   // bytes of it that records_ has looked at
  uint64_t offset_ = 0;
  size_t step_ = 64 << 10;  // grows, so that a small file takes little
  bool ended_ = false;
};

// What one scan knows of its documents, for all threads.
struct Parse {
  const Records& records;
  bool json = false;
  JsonStrings strings = JsonStrings::refused;
  std::string_view field;
  Layout layout = Layout::blocks;
};

class BatchScan {
 public:
  BatchScan(const RecordBatch& batch, const Parse& parse) : batch_(batch), parse_(parse) {
    if (parse.layout == Layout::blocks) packer_.emplace(part_);
  }

  ScanPart run() {
    if (batch_.too_long) part_.add_bad(++part_.lines, fmt::format("longer than {} bytes", kMaxDocument));
    const std::string_view all = batch_.records();
    counted_ = all.data();
    parse_.records.each(all, batch_.begin == 0 && !batch_.too_long, [&](std::string_view record) { add(record); });
    count_lines(all.data() + all.size());
    if (packer_) packer_->finish();
    if (!batch_.broken.empty()) part_.add_break(part_.lines + 1, batch_.broken);
    return std::move(part_);
  }

 private:
  void add(std::string_view record) {
    count_lines(record.data());
    if (parse_.json) {
      JsonText found = parser_.parse(record, parse_.field, parse_.strings);
      if (found.kind == JsonText::Kind::text) add_text(record, found.text);
      if (found.kind == JsonText::Kind::bad) part_.add_bad(part_.lines + 1, std::move(found.reason));
    } else if (record.size() > kMaxDocument) {
      part_.add_bad(part_.lines + 1, fmt::format("longer than {} bytes", kMaxDocument));
    } else if (!simdjson::validate_utf8(record.data(), record.size())) {
      part_.add_bad(part_.lines + 1, "invalid UTF-8");
    } else {
      add_text(record, record);
    }
  }
  void add_text(std::string_view record, std::string_view text) {
    if (packer_)
      packer_->add(text);
    else
      part_.add(batch_.begin + static_cast<uint64_t>(record.data() - batch_.data.data()), record.size(), text);
  }
  void count_lines(const char* end) {
    part_.lines += static_cast<uint64_t>(std::count(counted_, end, '\n'));
    counted_ = end;
  }

  const RecordBatch& batch_;
  const Parse& parse_;
  ScanPart part_;
  std::optional<BlockPacker> packer_;
  JsonLineParser parser_;
  const char* counted_ = nullptr;  // lines up to here are in part_.lines
};

void scan_records(const ScanJob& job, Compression compression, Records& records, Parse parse) {
  job.index.set_layout(parse.layout);
  const std::unique_ptr<ByteStream> stream = open_stream(job.file, compression);
  RecordBatches batches(*stream, records);
  const auto next = [&] {
    std::optional<RecordBatch> batch = batches.next();
    job.advance(stream->consumed());
    return batch;
  };
  const auto work = [&](const RecordBatch& batch) { return BatchScan(batch, parse).run(); };
  const auto take = [&](const ScanPart& part) { take_part(job, part); };
  Pipeline(next, work, take).run(job.options.threads);
}

enum class JsonShape { lines, array, values };

// By its first bytes: an array, a first line that is a whole object, or values over several lines.
JsonShape shape_of(const InputFile& file, Compression compression) {
  const std::unique_ptr<ByteStream> stream = open_stream(file, compression);
  std::string begin;
  size_t first = std::string::npos, newline = std::string::npos;
  while (begin.size() < 16 * kStep && newline == std::string::npos) {
    const size_t before = begin.size();
    begin.resize(before + kStep);
    const size_t n = stream->read(begin.data() + before, kStep);
    begin.resize(before + n);
    if (before == 0 && begin.starts_with("\xef\xbb\xbf")) begin.replace(0, 3, "   ");
    if (first == std::string::npos) first = begin.find_first_not_of(" \t\r\n");
    if (first != std::string::npos) newline = begin.find('\n', std::max(first, before));
    if (n == 0) break;
  }
  if (first == std::string::npos) return JsonShape::lines;
  if (begin[first] == '[') return JsonShape::array;
  const size_t length = std::min(newline, begin.size()) - first;
  begin.append(kJsonPadding, '\0');
  simdjson::dom::parser parser;
  return parser.parse(begin.data() + first, length, false).error() == simdjson::SUCCESS ? JsonShape::lines : JsonShape::values;
}

}  // namespace

void scan_json_lines(const ScanJob& job, Compression compression) {
  if (compression == Compression::none) return scan_jsonl(job);
  const auto records = line_records();
  scan_records(job, compression, *records, {.records = *records, .json = true, .field = job.options.field});
}

void scan_json(const ScanJob& job, Compression compression) {
  const JsonShape shape = shape_of(job.file, compression);
  if (shape == JsonShape::lines) return scan_json_lines(job, compression);
  const auto records = json_records(shape == JsonShape::array);
  scan_records(job, compression, *records,
               {.records = *records,
                .json = true,
                .strings = shape == JsonShape::array ? JsonStrings::taken : JsonStrings::refused,
                .field = job.options.field,
                .layout = compression == Compression::none ? Layout::json_lines : Layout::blocks});
}

void scan_texts(const ScanJob& job, Compression compression) {
  if (compression == Compression::none && job.options.separator.empty()) return scan_whole_text(job);
  const auto records = text_records(job.options.separator);
  scan_records(job, compression, *records,
               {.records = *records, .field = {}, .layout = compression == Compression::none ? Layout::in_place : Layout::blocks});
}

}  // namespace hlat::reader
