// Scans: one pass over a data file that fills its index. One function per format; all work in batches on several threads and
// give the same index for any number of them.
#pragma once

#include "data/reader/byte_stream.h"
#include "data/reader/document_file.h"
#include "data/reader/index_writer.h"
#include "data/reader/input_file.h"

namespace hlat::reader {

struct ScanJob {
  const InputFile& file;
  const InputFile* second;  // the .idx of a Megatron pair, else null
  const ReaderOptions& options;
  IndexWriter& index;
  mutable uint64_t advanced = 0;

  // The scan has come to this byte of the file. From one thread at a time.
  void advance(uint64_t offset) const;
};

void scan_json_lines(const ScanJob& job, Compression compression);
void scan_json(const ScanJob& job, Compression compression);   // lines, one array, or values one behind the other
void scan_texts(const ScanJob& job, Compression compression);  // the whole file, or what options.separator cuts
void scan_arrow(const ScanJob& job, Compression none);
void scan_parquet(const ScanJob& job, Compression none);
void scan_megatron(const ScanJob& job, Compression none);  // file is the .bin, second the .idx

void scan_jsonl(const ScanJob& job);       // lines of a plain file, ranges of it at once
void scan_whole_text(const ScanJob& job);  // a plain file that is one document

// Adds a part to the index. An Error when there was nothing good among many documents: a wrong field name should not take a
// pass over the whole file.
void take_part(const ScanJob& job, const ScanPart& part);

}  // namespace hlat::reader
