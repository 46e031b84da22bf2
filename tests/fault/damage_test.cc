// Damage to tensors of FP8, and what is read back of them.
#include "fault/damage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "ops/download.h"
#include "support/host_memory.h"

namespace hlat::fault {
namespace {

TEST(Damage, ReachesFp8) {
  CpuBackend backend(CpuOptions{});
  Device& device = backend.device();
  HostMemory memory;
  for (const DType type : {DType::f8e4m3, DType::f8e5m2}) {
    const Tensor t = memory.from(type, {4}, {1, -2, 0.5, 3});
    EXPECT_EQ(download_f32(device, t), (std::vector<float>{1, -2, 0.5, 3}));
    multiply(device, t, -2);
    EXPECT_EQ(download_f32(device, t), (std::vector<float>{-2, 4, -1, -6}));
    set_nan(device, t, 2);
    flip_bit(device, t, 1);
    const std::vector<float> values = download_f32(device, t);
    EXPECT_TRUE(std::isnan(values[2]));
    EXPECT_EQ(values[0], -2);
    EXPECT_EQ(values[1], type == DType::f8e4m3 ? 0x1p-6f : 0x1p-14f);  // the exponent's highest bit
    EXPECT_EQ(values[3], -6);
  }
}

}  // namespace
}  // namespace hlat::fault
