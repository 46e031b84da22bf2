// Scans: one pass over a data file that fills its index. One function per format; all work in batches on several threads and
// give the same index for any number of them.
#pragma once

#include "base/error.h"
#include "data/reader/document_file.h"
#include "data/reader/index_writer.h"
#include "data/reader/input_file.h"

namespace hlat::reader {

struct ScanJob {
  const InputFile& file;
  const InputFile* second;  // the .idx of a Megatron pair, else null
  const ReaderOptions& options;
  IndexWriter& index;
};

void scan_jsonl(const ScanJob& job);
void scan_jsonl_gzip(const ScanJob& job);
void scan_jsonl_zstd(const ScanJob& job);
void scan_text(const ScanJob& job);
void scan_arrow(const ScanJob& job);
void scan_parquet(const ScanJob& job);
void scan_megatron(const ScanJob& job);  // file is the .bin, second the .idx

// Adds a part to the index. An Error when there was nothing good among many documents: a wrong field name should not take a
// pass over the whole file.
inline void take_part(const ScanJob& job, const ScanPart& part) {
  constexpr uint64_t kTries = 1000;
  job.index.add(part);
  const IndexHeader& h = job.index.header();
  if (h.documents > 0 || h.bad < kTries) return;
  throw Error(describe_bad({.path = job.file.path(), .documents = 0, .bytes = 0, .bad = h.bad, .examples = job.index.examples()}));
}

}  // namespace hlat::reader
