// Work that one rank does for all: files are looked at once, and all ranks go on with what rank 0 saw.
#pragma once

#include <functional>
#include <string>

#include "comm/comm.h"

namespace hlat {

// What `work` returned on rank 0, on all ranks. When it throws, all ranks throw an error of the same kind with its words. Collective.
std::string from_rank_0(Comm& world, const std::function<std::string()>& work);

}  // namespace hlat
