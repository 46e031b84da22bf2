// A 64-bit hash of contents. Documents are told apart by it (validation split, repeats, changed files), so it must be well
// mixed; it runs over every byte read, so it must be fast; it decides the split, so it never changes.
// Four accumulators each take 16 of 64 bytes, s = fold(a ^ k, b ^ s) + rotate(s), where fold(x, y) is the two halves of the 128-bit
// product xored. Contents longer than a piece are hashed piece after piece, each seeded with the hash so far, so that a
// file needs not be in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hlat::reader {

constexpr size_t kHashPiece = size_t{1} << 20;
constexpr uint64_t kHashStart = 0xba92a46da8e94f19ull;

uint64_t hash_content(std::string_view content);

// The same in steps: start with kHashStart, pass pieces of kHashPiece bytes, the last may be shorter.
// Content that is empty is one empty piece.
uint64_t hash_piece(uint64_t so_far, std::string_view piece);

// The hash of two numbers.
uint64_t hash_pair(uint64_t a, uint64_t b);

}  // namespace hlat::reader
