// Calls that break a contract of the op set: the front refuses each with its words, before anything is counted.
#pragma once

#include <functional>
#include <vector>

#include "ops/ops.h"

namespace hlat {

struct RefusedCall {
  const char* message;  // a part of what the check says
  std::function<void(Ops&)> call;
};

void expect_refused(const std::vector<RefusedCall>& calls);

}  // namespace hlat
