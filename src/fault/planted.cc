#include "fault/planted.h"

#include "base/rng.h"

namespace hlat::fault {

int64_t victim_of(const FaultSpec& spec, uint64_t seed, int ranks) {
  if (spec.rank) return *spec.rank;
  RandomStream stream({.seed = seed, .stream = hash_name(spec.text()), .purpose = Noise::sample});
  return static_cast<int64_t>(stream.below(static_cast<uint64_t>(ranks)));
}

std::optional<FaultSpec> planted(const FaultConfig& config, FaultKind kind, int rank, int ranks) {
  std::vector<std::string> problems;  // told when the config was read
  for (const FaultSpec& spec : parse_faults(config.inject, problems))
    if (spec.kind == kind && victim_of(spec, config.seed, ranks) == rank) return spec;
  return std::nullopt;
}

}  // namespace hlat::fault
