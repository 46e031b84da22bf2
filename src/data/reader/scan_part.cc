#include "data/reader/scan_part.h"

#include <algorithm>

#include "base/error.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {
namespace {

// The index keeps one a line.
std::string on_one_line(std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  return reason;
}

}  // namespace

void ScanPart::add(uint64_t offset, uint64_t stored, std::string_view text) {
  HLAT_CHECK(stored <= UINT32_MAX && text.size() <= kMaxDocument, "document of {} bytes in {}", text.size(), stored);
  entries.push_back({.offset = offset,
                     .stored = static_cast<uint32_t>(stored),
                     .length = static_cast<uint32_t>(text.size()),
                     .hash = hash_content(text)});
  bytes += text.size();
  empty += text.empty() ? 1 : 0;
}

void ScanPart::add_bad(uint64_t line, std::string reason) {
  ++bad;
  if (examples.size() < kExamples) examples.push_back({.line = line, .reason = on_one_line(std::move(reason))});
}

void ScanPart::add_break(uint64_t line, std::string reason) { broken = {.line = line, .reason = on_one_line(std::move(reason))}; }

}  // namespace hlat::reader
