#include "fault/random_faults.h"

#include <cmath>

#include "base/error.h"

namespace hlat::fault {

RandomFaults::RandomFaults(uint64_t seed, int attempt, double every_s, std::vector<FaultKind> kinds, int ranks)
    : stream_({.seed = seed, .stream = hash_name("random faults"), .purpose = Noise::sample, .step = static_cast<uint32_t>(attempt)}),
      every_s_(every_s),
      kinds_(std::move(kinds)),
      ranks_(ranks) {
  HLAT_CHECK(!kinds_.empty() && every_s > 0 && ranks > 0, "{} kinds of faults every {} s for {} ranks", kinds_.size(), every_s, ranks);
  draw();
}

void RandomFaults::draw() {
  next_.at_s -= every_s_ * std::log1p(-stream_.next_unit());
  next_.kind = kinds_[stream_.below(kinds_.size())];
  next_.rank = static_cast<int>(stream_.below(static_cast<uint64_t>(ranks_)));
}

}  // namespace hlat::fault
