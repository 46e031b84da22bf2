#include "model/rank_plan.h"

namespace hlat {

std::vector<AxisTraffic> traffic_of(const Mesh& mesh) {
  std::vector<AxisTraffic> list;
  for (const auto& comm : mesh.comms()) list.push_back({comm->name(), comm->size(), comm->traffic()});
  return list;
}

void RankPlan::check_used(const MemoryPlan& used, const Mesh& real) const {
  for (size_t i = 0; i < kPurposes; ++i)
    HLAT_CHECK(memory.bytes[i] == used.bytes[i], "region {}: planned {} bytes, the step used {}", name_of(static_cast<Purpose>(i)),
               memory.bytes[i], used.bytes[i]);
  HLAT_CHECK(host_bytes == real.host_bytes(), "host memory for communication: planned {} bytes, used {}", host_bytes, real.host_bytes());
}

}  // namespace hlat
