#include "data/reader/scan.h"

#include "base/error.h"

namespace hlat::reader {

void ScanJob::advance(uint64_t offset) const {
  if (offset <= advanced) return;
  if (options.scanned) options.scanned(offset - advanced);
  advanced = offset;
}

void take_part(const ScanJob& job, const ScanPart& part) {
  constexpr uint64_t kTries = 1000;
  job.index.add(part);
  const IndexHeader& h = job.index.header();
  if (h.documents > 0 || h.bad < kTries) return;
  throw UsageError(describe_bad({.path = job.file.path(), .documents = 0, .bytes = 0, .bad = h.bad, .examples = job.index.examples()}));
}

}  // namespace hlat::reader
