// Vectorised Philox4x32-10 for rounding noise: element e of a stream is half-word e % 8 of block e / 8 (base/rng.h).
#pragma once

#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

constexpr int kNoiseBlocks = 16;                 // Philox blocks made at a time
constexpr int64_t kNoiseRun = kNoiseBlocks * 8;  // elements they serve

// Noise for blocks [first, first + kNoiseBlocks) as half-words in element order. The inner loops are over blocks
// and have no dependence, so the compiler turns them into vectors.
inline void noise_run(uint16_t* out, uint64_t first, const uint32_t* key, uint32_t step, uint32_t purpose) {
  uint32_t c0[kNoiseBlocks], c1[kNoiseBlocks], c2[kNoiseBlocks], c3[kNoiseBlocks];
  for (int i = 0; i < kNoiseBlocks; ++i) {
    c0[i] = static_cast<uint32_t>(first + static_cast<uint64_t>(i));
    c1[i] = static_cast<uint32_t>((first + static_cast<uint64_t>(i)) >> 32);
    c2[i] = step;
    c3[i] = purpose;
  }
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kNoiseBlocks; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[i];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(p1);
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kNoiseBlocks; ++i) {
    const uint32_t words[4] = {c0[i], c1[i], c2[i], c3[i]};
    std::memcpy(out + 8 * i, words, sizeof words);
  }
}

// Serves noise for kLanes consecutive elements at any position; makes a run at a time.
class NoiseReader {
 public:
  NoiseReader(const uint32_t* key, uint32_t step, uint32_t purpose) : step_(step), purpose_(purpose) {
    key_[0] = key[0];
    key_[1] = key[1];
  }

  vu at(int64_t element) {
    const int64_t run = element / kNoiseRun;
    const auto block = static_cast<uint64_t>(run) * kNoiseBlocks;
    if (run != run_) {
      if (has_next_ && run == run_ + 1)
        std::memcpy(noise_, noise_ + kNoiseRun, kNoiseRun * sizeof(uint16_t));
      else
        noise_run(noise_, block, key_, step_, purpose_);
      run_ = run;
      has_next_ = false;
    }
    const int64_t offset = element - run * kNoiseRun;
    if (offset + kLanes > kNoiseRun && !has_next_) {  // an unaligned read reaches into the next run
      noise_run(noise_ + kNoiseRun, block + kNoiseBlocks, key_, step_, purpose_);
      has_next_ = true;
    }
    vh h;
    std::memcpy(&h, noise_ + offset, sizeof h);
    return __builtin_convertvector(h, vu);
  }

 private:
  uint32_t key_[2];
  uint32_t step_, purpose_;
  int64_t run_ = -1;
  bool has_next_ = false;
  uint16_t noise_[2 * kNoiseRun];
};

}  // namespace
}  // namespace hlat::HLAT_ISA
