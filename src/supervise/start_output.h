// What mpirun and the ranks write to stderr, for a person: lines of the ranks pass, also unfinished ones (a live line of progress);
// mpirun's own notices, which it sets between rules of dashes or begins with "[host:pid]", are kept for the evidence.
#pragma once

#include <string>

namespace hlat {

class StartOutput {
 public:
  std::string pass(const std::string& text);         // of what came now, that a person should see
  const std::string& kept() const { return kept_; }  // the latest 16 KiB of all, for the evidence

 private:
  std::string take_line(const std::string& line);

  std::string line_, kept_;
  bool notice_ = false;
};

// What such output says last, on one line: the notice that ends it, or its last line. Empty: nothing.
std::string last_words(const std::string& output);

// Why a program of ranks says that it failed: the first message of hlat in such output, on one line, whatever mpirun adds to it; where
// there is none, its last words.
std::string failure_words(const std::string& output);

}  // namespace hlat
