// Opens all files of a source. Small files share one index file (index_pack.h), which is opened with a look at each file's stamp
// alone; large ones have indices of their own. What has to be scanned is scanned on all threads, and told as it goes on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/reader/document_file.h"
#include "data/reader/match_files.h"

namespace hlat {

// How far the scan of a source is.
struct ScanProgress {
  std::string source;
  uint64_t files = 0, all_files = 0;
  uint64_t bytes = 0, all_bytes = 0;
};
using ScanObserver = std::function<void(const ScanProgress&)>;  // called by one thread at a time

struct SourceFiles {
  std::string name;     // of the source, for messages and progress
  std::string pattern;  // that the files were found by
  std::vector<FoundFile> files;
  std::span<const uint64_t> verified;  // fingerprints of all files, as ReaderOptions::verified; or nothing
  ScanObserver observer = {};
};

// In the order of the files. Of the options `threads` is the number for all files together.
std::vector<std::unique_ptr<DocumentFile>> open_all(const SourceFiles& source, const ReaderOptions& options);

}  // namespace hlat
