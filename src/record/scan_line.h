// What a person sees while files without an index are scanned: how far each source is. On a terminal one line, redrawn; in a pipe a line
// every few seconds. A scan that is over in a moment shows nothing.
#pragma once

#include <functional>
#include <ostream>
#include <string>

namespace hlat {

class ScanLine {
 public:
  ScanLine(std::ostream& out, bool live, std::function<double()> now) : out_(out), live_(live), now_(std::move(now)), begin_(now_()) {}
  ~ScanLine();  // ends the line
  ScanLine(const ScanLine&) = delete;
  ScanLine& operator=(const ScanLine&) = delete;

  void show(const std::string& source, uint64_t files, uint64_t all_files, uint64_t bytes, uint64_t all_bytes);

 private:
  std::ostream& out_;
  bool live_;
  std::function<double()> now_;
  double begin_, shown_at_ = 0;
  bool line_open_ = false;
};

}  // namespace hlat
