#include "checkpoint/checksum.h"

#include <fmt/format.h>

#include <charconv>

#define XXH_INLINE_ALL  // the header alone; the library need not be there at run time
#include <xxhash.h>

namespace hlat {

struct RunningChecksum::State {
  XXH3_state_t xxh;
};

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
RunningChecksum::~RunningChecksum() = default;

void RunningChecksum::add(const void* data, size_t bytes) { XXH3_64bits_update(&state_->xxh, data, bytes); }

uint64_t RunningChecksum::take() {
  const uint64_t value = XXH3_64bits_digest(&state_->xxh);
  XXH3_64bits_reset(&state_->xxh);
  return value;
}

uint64_t checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

std::string checksum_text(uint64_t value) { return fmt::format("{:016x}", value); }

std::optional<uint64_t> parse_checksum(std::string_view text) {
  uint64_t value = 0;
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace hlat
