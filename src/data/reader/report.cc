// What was bad in a data file, in words, and when it is too much.
#include <algorithm>

#include "base/error.h"
#include "data/reader/document_file.h"
#include "data/reader/scan.h"

namespace hlat {
namespace {

constexpr uint64_t kFew = 3;  // bad documents that no share forbids: a short file has no shares worth the name

}  // namespace

std::string describe_bad(const FileReport& report) {
  std::string text = fmt::format("{}: {} of {} documents are bad", report.path, report.bad, report.bad + report.documents);
  for (const BadDocument& bad : report.examples) {
    text +=
        bad.line > 0 ? fmt::format("\n  {}:{}: {}", report.path, bad.line, bad.reason) : fmt::format("\n  {}: {}", report.path, bad.reason);
  }
  if (report.bad > report.examples.size()) text += fmt::format("\n  and {} more", report.bad - report.examples.size());
  return text;
}

void check_bad_share(const FileReport& report, double share) {
  const double allowed = share * static_cast<double>(report.bad + report.documents);
  if (report.bad == 0 || (share > 0 && report.bad <= kFew) || static_cast<double>(report.bad) <= allowed) return;
  throw Error(fmt::format("{}\n  allowed is a share of {:g}", describe_bad(report), share));
}

void reader::take_part(const ScanJob& job, const ScanPart& part) {
  constexpr uint64_t kTries = 1000;
  job.index.add(part);
  const IndexHeader& h = job.index.header();
  if (h.documents > 0 || h.bad < kTries) return;
  throw Error(describe_bad({.path = job.file.path(), .documents = 0, .bytes = 0, .bad = h.bad, .examples = job.index.examples()}));
}

}  // namespace hlat
