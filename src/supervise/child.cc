#include "supervise/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace hlat {

namespace {

using Pipe = std::array<int, 2>;

Pipe make_pipe() {
  Pipe p{-1, -1};
  if (::pipe2(p.data(), O_CLOEXEC) != 0) fail<FaultError>("no pipe for a child process: {}", std::strerror(errno));
  return p;
}

int open_for_child(const std::string& file, int mode) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666);
  if (fd < 0) fail<FaultError>("cannot open {} for the output of a child process: {}", file, std::strerror(errno));
  return fd;
}

// In the child, where only calls that are safe after fork() are made: everything is prepared before. parent: 0, or whose end is its own.
[[noreturn]] void become(char* const* words, char* const* environment, int input, int output, int errors, pid_t parent) {
  ::setsid();
  if (parent != 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(128 + SIGTERM);  // it ended before it was asked for
  }
  if (input >= 0) ::dup2(input, STDIN_FILENO);
  if (output >= 0) ::dup2(output, STDOUT_FILENO);
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  ::execvpe(words[0], words, environment);
  ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& t : texts) out.push_back(t.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

// What is there; a pipe at its end is closed and becomes -1.
std::string read_all(int& from) {
  std::string out;
  std::array<char, 65536> buffer{};
  while (from >= 0) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got > 0) {
      out.append(buffer.data(), static_cast<size_t>(got));
    } else if (got == 0) {
      ::close(from);
      from = -1;
    } else if (errno != EINTR) {
      break;
    }
  }
  return out;
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const ChildOptions& options) {
  std::vector<std::string> texts = words, environment = environment_with(options.variables);
  const std::vector<char*> word_list = pointers(texts), environment_list = pointers(environment);
  const Pipe input = make_pipe();
  Pipe errors = options.take_errors ? make_pipe() : Pipe{-1, -1};
  Pipe output = options.take_output ? make_pipe() : Pipe{-1, -1};
  if (!options.errors_file.empty()) errors[1] = open_for_child(options.errors_file, O_APPEND);
  if (!options.output_file.empty()) output[1] = open_for_child(options.output_file, O_TRUNC);
  const pid_t parent = options.ends_with_parent ? ::getpid() : 0;
  pid_ = ::fork();
  const int error = errno;
  if (pid_ == 0) become(word_list.data(), environment_list.data(), input[0], output[1], errors[1], parent);
  ::close(input[0]);
  for (const int theirs : {errors[1], output[1]})
    if (theirs >= 0) ::close(theirs);
  // Small enough for a pipe's buffer, and a child that is gone already is found out later.
  if (pid_ > 0 && !options.input.empty() && ::write(input[1], options.input.data(), options.input.size()) < 0) errno = 0;
  ::close(input[1]);
  errors_ = errors[0];
  output_ = output[0];
  for (const int own : {errors_, output_})
    if (own >= 0) ::fcntl(own, F_SETFL, O_NONBLOCK);
  if (pid_ < 0) fail<FaultError>("cannot start {}: {}", words[0], std::strerror(error));
}

Child::~Child() {
  end();
  for (const int own : {errors_, output_})
    if (own >= 0) ::close(own);
}

// It is left to end() to take it from the kernel's list.
bool Child::running() {
  if (status_) return false;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == EINTR) return true;
  if (info.si_pid == 0) return true;
  status_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  return false;
}

void Child::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

void Child::end() {
  if (reaped_) return;
  ::kill(-pid_, SIGKILL);  // the session's group: helpers of mpirun among them
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  reaped_ = true;
  if (!status_) status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Child::read_errors() { return read_all(errors_); }
std::string Child::read_output() { return read_all(output_); }

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) fail<UsageError>("a quote without its end in: {}", text);
  if (inside) words.push_back(word);
  return words;
}

std::string own_program() {
  static const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  return path;
}

}  // namespace hlat
