#include "data/reader/content_hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace hlat::reader {
namespace {

__extension__ using Product = unsigned __int128;
using Stripe = std::array<uint64_t, 8>;

// Odd, with as many ones as zeros; from SHA-256 of counted names.
constexpr std::array<uint64_t, 4> kKeys = {0x8bdc0e9ac75b1949ull, 0xdbc3c6e84d1422edull, 0x33348fba6a55a869ull, 0xad2976025283fb4full};

uint64_t fold(uint64_t a, uint64_t b) {
  const Product p = Product{a} * b;
  return static_cast<uint64_t>(p) ^ static_cast<uint64_t>(p >> 64);
}

Stripe load(const char* p) {
  Stripe words;
  std::memcpy(words.data(), p, sizeof words);
  return words;
}

void take(std::array<uint64_t, 4>& sums, const Stripe& w) {
  for (size_t i = 0; i < 4; ++i) sums[i] = fold(w[2 * i] ^ kKeys[i], w[2 * i + 1] ^ sums[i]) + std::rotl(sums[i], 23);
}

}  // namespace

uint64_t hash_pair(uint64_t a, uint64_t b) { return fold(fold(a ^ kKeys[0], b ^ kKeys[1]) ^ a, kKeys[2] ^ std::rotl(b, 32)); }

uint64_t hash_piece(uint64_t so_far, std::string_view piece) {
  std::array<uint64_t, 4> sums = {so_far ^ kKeys[3], so_far ^ kKeys[2], so_far ^ kKeys[1], so_far ^ kKeys[0]};
  size_t at = 0;
  for (; at + sizeof(Stripe) <= piece.size(); at += sizeof(Stripe)) take(sums, load(piece.data() + at));
  if (at < piece.size()) {
    Stripe last{};
    std::memcpy(last.data(), piece.data() + at, piece.size() - at);
    take(sums, last);
  }
  // The length tells a short last stripe from one that ends in zeros.
  return hash_pair(hash_pair(sums[0], sums[1]) ^ piece.size(), hash_pair(sums[2], sums[3]));
}

uint64_t hash_content(std::string_view content) {
  uint64_t hash = kHashStart;
  do {
    const std::string_view piece = content.substr(0, kHashPiece);
    hash = hash_piece(hash, piece);
    content.remove_prefix(piece.size());
  } while (!content.empty());
  return hash;
}

}  // namespace hlat::reader
