// The scan of Arrow and Parquet files. Where all texts stand in the file as they are (Arrow without compression), the index
// points into the file; otherwise it keeps them in blocks.
#include <simdjson.h>

#include "base/error.h"
#include "data/reader/blocks.h"
#include "data/reader/pipeline.h"
#include "data/reader/scan.h"
#include "data/reader/table_column.h"

namespace hlat::reader {
namespace {

// What is wrong with a value; empty when nothing is.
std::string problem_of(const std::optional<std::string_view>& text) {
  if (!text) return "null, not a text";
  if (text->size() > kMaxDocument) return fmt::format("longer than {} bytes", kMaxDocument);
  if (!simdjson::validate_utf8(text->data(), text->size())) return "invalid UTF-8";
  return {};
}

ScanPart scan_rows(const TableBatch& batch, Layout layout) {
  ScanPart part;
  std::optional<BlockPacker> packer;
  if (layout == Layout::blocks) packer.emplace(part);
  for (const auto& text : batch.texts) {
    ++part.lines;
    std::string problem = problem_of(text);
    if (!problem.empty()) {
      part.add_bad(part.lines, std::move(problem));
    } else if (packer) {
      packer->add(*text);
    } else {
      part.add(text->empty() ? 0 : batch.begin + static_cast<uint64_t>(text->data() - batch.base), text->size(), *text);
    }
  }
  if (packer) packer->finish();
  if (!batch.broken.empty()) part.add_break(part.lines + 1, batch.broken);
  return part;
}

// False when the layout is in_place and a batch was met whose texts are not in the file as they are.
bool scan_column(const ScanJob& job, TableColumn& column, Layout layout) {
  job.index.set_layout(layout);
  bool possible = true;
  const auto next = [&]() -> std::optional<TableBatch> {
    std::optional<TableBatch> batch = column.next();
    if (batch) job.advance(batch->read_to);
    if (batch && layout == Layout::in_place && !batch->in_place && batch->broken.empty()) {
      possible = false;
      batch.reset();
    }
    return batch;
  };
  const auto work = [&](const TableBatch& batch) { return scan_rows(batch, layout); };
  const auto take = [&](const ScanPart& part) { take_part(job, part); };
  Pipeline(next, work, take).run(job.options.threads);
  return possible;
}

}  // namespace

void scan_arrow(const ScanJob& job, Compression /*none*/) {
  if (scan_column(job, *open_arrow_column(job.file, job.options.field), Layout::in_place)) return;
  job.index.restart();
  scan_column(job, *open_arrow_column(job.file, job.options.field), Layout::blocks);
}

void scan_parquet(const ScanJob& job, Compression /*none*/) {
  scan_column(job, *open_parquet_column(job.file, job.options.field), Layout::blocks);
}

}  // namespace hlat::reader
