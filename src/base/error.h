// Errors. `Error` is for what a user or the machine can cause; `UsageError` is an Error about input, shown with
// exit code 2. HLAT_CHECK guards contracts between our own parts, is always on, and states the values.
// Library code throws and never prints or exits; messages and exit codes are decided in cli.
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

class UsageError : public Error {
 public:
  using Error::Error;
};

// A broken contract: a bug in hlat, not in its input.
class CheckFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(fmt::format(text, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace hlat

#define HLAT_CHECK(condition, ...)                                                                    \
  do {                                                                                                \
    if (!(condition)) ::hlat::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
