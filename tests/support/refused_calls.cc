#include "support/refused_calls.h"

#include <gtest/gtest.h>

#include "backend/null/null_ops.h"

namespace hlat {

void expect_refused(const std::vector<RefusedCall>& calls) {
  Region temp;
  NullOps ops(temp);
  for (const RefusedCall& c : calls) {
    try {
      c.call(ops);
      ADD_FAILURE() << "accepted: " << c.message;
    } catch (const CheckFailed& e) {
      EXPECT_NE(std::string(e.what()).find(c.message), std::string::npos) << "said: " << e.what() << "\nexpected: " << c.message;
    }
  }
  for (const OpCost& c : ops.cost().op) EXPECT_EQ(c.calls, 0) << "a refused call costs nothing";
}

}  // namespace hlat
