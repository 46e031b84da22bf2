// Checksums of checkpoints: XXH3 with 64 bits and no seed, written as 16 hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hlat {

uint64_t checksum(const void* data, size_t bytes);
inline uint64_t checksum(std::string_view text) { return checksum(text.data(), text.size()); }

// The same of bytes that come in parts.
class RunningChecksum {
 public:
  RunningChecksum();
  ~RunningChecksum();
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;

  void add(const void* data, size_t bytes);
  uint64_t take();  // of all that was added; begins anew

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string checksum_text(uint64_t value);
std::optional<uint64_t> parse_checksum(std::string_view text);  // none: not 16 lower-case hexadecimal digits

}  // namespace hlat
