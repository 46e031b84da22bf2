// Errors. `Error` is for what a user or the machine can cause; its kinds tell who can mend it, and have exit codes of their own.
// HLAT_CHECK guards contracts between our own parts, is always on, and states the values.
// Library code throws and never prints or exits; cli does, with the exit codes of exit_code.h.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace hlat {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The input must be changed: starting again with the same would fail again.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A peer, the network or a disk failed: the same run may work when it is started again.
class FaultError : public Error {
 public:
  using Error::Error;
};

// The numbers went wrong: a loss or gradient that is not finite, replicas that differ.
class NumericalError : public Error {
 public:
  using Error::Error;
};

// A broken contract: a bug in hlat, not in its input.
class CheckFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// fail("...", ...) throws an Error, fail<UsageError>("...", ...) one of that kind.
template <class Kind = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Kind(fmt::format(text, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace hlat

#define HLAT_CHECK(condition, ...)                                                                    \
  do {                                                                                                \
    if (!(condition)) ::hlat::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
