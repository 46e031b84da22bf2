// The fingerprint that Ops::checksum takes of a tensor's bits, taken of host memory: what a device must come to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hlat {

uint64_t fingerprint(const void* data, size_t bytes);

// One word's part of the sum, for data that is never in one piece: word `index`, eight bytes in the order of the host.
uint64_t fingerprint_word(uint64_t index, uint64_t word);

}  // namespace hlat
