// What a person sees while training. On a terminal: one live line, redrawn at most ten times a second. In a pipe:
// plain lines, at most about one a second. The first and the last step are always shown.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "record/metrics.h"

namespace hlat {

struct ProgressOptions {
  int64_t total_steps = 0;
  bool live = false;
  std::function<double()> now;  // seconds, any origin
  std::function<int()> width;   // columns of the terminal; asked at every redraw, since windows change
};

// Columns of the terminal that `fd` is, if it can move its cursor; 0: it is none.
int live_columns(int fd);
inline constexpr const char* kColumnsVariable = "HLAT_COLUMNS";  // given by hlat launch to ranks whose output it shows on a terminal

// Options for a real stream: live when `fd` is a terminal that can move its cursor.
ProgressOptions progress_options(int fd, int64_t total_steps);

// The parts of the line that fit into `width` columns (0: all), the most important first.
// alarms: told so far.
std::string progress_line(const StepMetrics& m, int64_t total_steps, double elapsed_s, double eta_s, int width, int64_t alarms = 0);

class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options);
  ~Progress();  // ends the line, so that an error message starts on its own
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepMetrics& m);
  // Before the first step is done there is no line to show, and a step can take minutes: a terminal then shows how far it is.
  void first_step(int64_t micro, int64_t micros);
  void say(const std::string& text);    // a line of its own, which stays; on a terminal the live line goes on below it
  void alarm(const std::string& text);  // such a line, and the live one counts it from now on
  void finish();                        // shows the latest step if it was held back, and ends the line

 private:
  void show(const StepMetrics& m, double now);

  std::ostream& out_;
  ProgressOptions options_;
  double start_;
  double shown_at_ = 0;
  int64_t steps_seen_ = 0, alarms_ = 0;
  bool line_open_ = false;
  std::optional<StepMetrics> held_back_;
};

}  // namespace hlat
