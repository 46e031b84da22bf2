#include "ops/device.h"

namespace hlat {

PlannedMemory::PlannedMemory(Device& device, const MemoryPlan* plan) : device_(device) {
  for (size_t i = 0; plan != nullptr && i < blocks_.size(); ++i) {
    if (plan->bytes[i] > 0) blocks_[i] = device_.allocate(plan->bytes[i]);
    memory_.set(static_cast<Purpose>(i), Region(static_cast<Purpose>(i), blocks_[i], plan->bytes[i]));
  }
}

PlannedMemory::~PlannedMemory() {
  for (std::byte* block : blocks_)
    if (block != nullptr) device_.free(block);
}

}  // namespace hlat
