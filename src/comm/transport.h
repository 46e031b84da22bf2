// How the tensors of a group get from rank to rank, and so where they lie and where the room for their staging comes from.
#pragma once

#include <cstdint>

namespace hlat {

enum class Transport : uint8_t {
  host,    // they lie in host memory
  staged,  // on a device, through copies in pinned host memory
  nccl,    // on a device each, by NCCL
};

}  // namespace hlat
