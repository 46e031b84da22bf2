// Python's random.Random(seed).sample(): which few-shot examples the harness draws. The generator is the Mersenne Twister with Python's
// way of seeding; a draw below n takes as many high bits as n has and tries again until the number fits.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace hlat {

class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  uint32_t below(uint32_t bound);  // uniform in [0, bound); bound > 0
  // Different numbers below `population`, in the order in which they are drawn; count <= population.
  std::vector<uint32_t> sample(uint32_t population, uint32_t count);

 private:
  std::mt19937 engine_;
};

}  // namespace hlat
