#include "selfcheck/known_rows.h"

#include "base/rng.h"

namespace hlat {

void KnownRows::read(int64_t first, Batch& b) {
  std::vector<int32_t> tokens(static_cast<size_t>(b.seq_len) + 1);
  for (int64_t r = 0; r < b.rows; ++r) {
    RandomStream stream({.seed = static_cast<uint64_t>(first_ + first + r),
                         .stream = hash_name("known rows"),
                         .purpose = Noise::data,
                         .step = static_cast<uint32_t>(step)});
    for (int32_t& token : tokens) token = static_cast<int32_t>(stream.below(static_cast<uint64_t>(vocab_)));
    b.set_row(r, tokens.data());
    int32_t* inputs = b.inputs.data() + r * b.seq_len;
    int32_t* targets = b.targets.data() + r * b.seq_len;
    for (int64_t t = 0; t < b.seq_len; ++t) {
      const bool other = others_from >= 0 && t >= others_from && t < others_to;
      if (other) inputs[t] = static_cast<int32_t>((inputs[t] + 1 + t % (vocab_ - 1)) % vocab_);
      if (losses >= 0 && t >= losses) targets[t] = -1;
    }
  }
}

}  // namespace hlat
