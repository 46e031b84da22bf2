#include "cli/seed_option.h"

#include <charconv>

namespace hlat {

CLI::Validator seed_number() {
  const auto check = [](std::string& word) -> std::string {
    uint64_t value = 0;
    const char* end = word.data() + word.size();
    const std::from_chars_result read = std::from_chars(word.data(), end, value);
    return read.ec == std::errc() && read.ptr == end ? "" : word + ": must be a whole number from 0 on";
  };
  return CLI::Validator(check, "");
}

}  // namespace hlat
