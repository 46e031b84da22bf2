#include "health/rope_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/download.h"

namespace hlat {

std::string wrong_rope(Device& device, const Tensor& table, const RopeFrequencies& frequencies, int64_t positions) {
  constexpr double kRopeError = 1e-5;  // of a cosine or sine in f32
  const int64_t length = table.dim(0), width = table.dim(1), half = width / 2, count = std::min(positions, length);
  for (int64_t p = 0; p < count; ++p) {
    const int64_t t = (p + 1) * length / count - 1;
    const std::vector<float> row = download_f32(device, table.rows(t, t + 1));
    for (int64_t i = 0; i < width; ++i) {
      const double angle = static_cast<double>(t) * frequencies.at(i % half, width), right = i < half ? std::cos(angle) : std::sin(angle);
      const double got = row[static_cast<size_t>(i)];
      if (!(std::abs(got - right) <= kRopeError))
        return fmt::format("{} of pair {} at position {} is {:.5f}, not {:.5f}", i < half ? "the cosine" : "the sine", i % half, t, got,
                           right);
    }
  }
  return {};
}

}  // namespace hlat
