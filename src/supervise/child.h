// A program that this process starts and watches: mpirun, srun, an agent. It has a session of its own, so that signals of the terminal
// reach only the launcher, which decides what they mean.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hlat {

struct ChildOptions {
  std::map<std::string, std::string> variables = {};  // besides those of this process
  std::string input = {};                             // for its standard input, of a few KiB at most; then it is at its end
  bool take_errors = false;                           // its stderr is read here (read_errors) instead of being this process's
  bool take_output = false;                           // likewise its stdout (read_output)
  std::string output_file = {};                       // its stdout goes to this file, which is emptied first
  std::string errors_file = {};                       // its stderr is appended to this file
  bool ends_with_parent = false;                      // it gets SIGTERM when the thread that started it ends, however that happens
};

class Child {
 public:
  // FaultError when it cannot be started; a program that is not found is exit code 127.
  Child(const std::vector<std::string>& words, const ChildOptions& options);
  ~Child();  // ends it at once
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool running();                                        // until it is known to have ended
  std::optional<int> status() const { return status_; }  // exit code, or 128 + signal
  void signal(int number) const;                         // to it alone
  void end();                                            // with all of its session that is left, and waits for it
  std::string read_errors();                             // what came since the last call; does not wait
  std::string read_output();

 private:
  pid_t pid_ = -1;
  int errors_ = -1, output_ = -1;  // -1: not taken, or at its end
  std::optional<int> status_;
  bool reaped_ = false;  // until then its number, and that of its group, belongs to no other process
};

// Words of a command as a shell splits them, without its other meanings; "a 'b c'" is two. UsageError: a quote without its end.
std::vector<std::string> split_words(const std::string& text);

std::string own_program();  // the path of this binary; asked first before it may be replaced, it stays that path

}  // namespace hlat
