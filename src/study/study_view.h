// What a person sees while a study runs. On a terminal: a live block of one line for each run under way and one for the study, redrawn in
// place below the lines that stay. In a pipe: a plain line for each of them now and then.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "study/runner.h"

namespace hlat {

class StudyView {
 public:
  // columns: of the terminal, asked at every redraw; 0: it is none. now: seconds.
  StudyView(std::ostream& out, std::function<int()> columns, std::function<double()> now);
  ~StudyView();  // the live block stays as it is
  StudyView(const StudyView&) = delete;
  StudyView& operator=(const StudyView&) = delete;

  void say(const std::string& text);
  void show(const std::vector<RunShown>& runs, const std::string& done);

 private:
  void clear();

  std::ostream& out_;
  std::function<int()> columns_;
  std::function<double()> now_;
  size_t drawn_ = 0;  // lines of the block on the screen
  double shown_at_;
};

std::string run_line(const RunShown& run);  // "sr+seed=1  step 120/900  loss 3.4512  61.2k tokens/s  1m 02s left"

}  // namespace hlat
