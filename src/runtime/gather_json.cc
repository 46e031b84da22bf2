#include "runtime/gather_json.h"

#include <algorithm>

#include "comm/host_exchange.h"

namespace hlat {

std::vector<nlohmann::json> gather_json(Comm& world, const nlohmann::json& own) {
  const std::vector<uint8_t> packed = nlohmann::json::to_cbor(own);
  const std::vector<uint64_t> sizes = all_gather_values(world, static_cast<uint64_t>(packed.size()));
  const uint64_t most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<uint8_t> all(most * sizes.size());
  std::copy(packed.begin(), packed.end(), all.begin() + static_cast<int64_t>(most) * world.rank());
  world.host().all_gather_bytes(all.data(), most);
  std::vector<nlohmann::json> out;
  for (size_t r = 0; r < sizes.size(); ++r) {
    const auto begin = all.begin() + static_cast<int64_t>(r * most);
    out.push_back(nlohmann::json::from_cbor(begin, begin + static_cast<int64_t>(sizes[r])));
  }
  return out;
}

}  // namespace hlat
