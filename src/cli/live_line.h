// How far work is, in one line: on a terminal it is redrawn four times a second, and gone in the end; in a pipe there is a line every half
// minute. Work that ends before the first one is due shows nothing.
#pragma once

#include <ostream>
#include <string>

#include "record/progress.h"

namespace hlat {

class LiveLine {
 public:
  LiveLine(std::ostream& out, ProgressOptions options) : out_(out), options_(std::move(options)), shown_at_(now()) {}
  ~LiveLine() { end(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool live() const { return options_.live; }
  double now() const { return options_.now(); }
  bool due(double now);  // true: the time of the next one counts from now on
  void show(const std::string& line);
  void end();  // what is written next starts on a line of its own

 private:
  std::ostream& out_;
  ProgressOptions options_;
  double shown_at_;
  bool open_ = false;
};

}  // namespace hlat
