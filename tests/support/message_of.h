// The message of the exception that comes out of a call.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace hlat {

inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no exception";
}

}  // namespace hlat
