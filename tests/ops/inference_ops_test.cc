// Ops for inference: what they do in a way of their own agrees with plain sums.
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"

namespace hlat {
namespace {

std::vector<float> random_values(size_t count, const char* name) {
  RandomStream random({.seed = 4, .stream = hash_name(name), .purpose = Noise::data});
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(2 * random.next_unit() - 1);
  return values;
}

// Also beside the border of a few rows, where the ways meet.
TEST(InferenceOps, ProductsOfFewRowsAreSumsOfProducts) {
  for (const std::string& isa : available_isas()) {
    CpuBackend backend({.threads = 2, .isa = isa});
    Region temp;
    const auto ops = backend.make_inference_ops(temp);
    for (const int64_t m : {1, 2, 3, 7, 8, 9})
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{5, 3}, {33, 70}, {64, 256}, {1, 129}}) {
        std::vector<float> a = random_values(static_cast<size_t>(m * k), "a"), b = random_values(static_cast<size_t>(n * k), "b");
        std::vector<float> c = random_values(static_cast<size_t>(m * n), "c");
        const std::vector<float> before = c;
        for (const bool accumulate : {false, true}) {
          c = before;
          ops->matmul(Tensor::contiguous(c.data(), DType::f32, {m, n}), Tensor::contiguous(a.data(), DType::f32, {m, k}),
                      Tensor::contiguous(b.data(), DType::f32, {n, k}), {.trans_b = true, .accumulate = accumulate});
          for (int64_t i = 0; i < m * n; ++i) {
            double sum = accumulate ? before[static_cast<size_t>(i)] : 0;
            for (int64_t t = 0; t < k; ++t)
              sum += static_cast<double>(a[static_cast<size_t>(i / n * k + t)]) * b[static_cast<size_t>(i % n * k + t)];
            ASSERT_NEAR(c[static_cast<size_t>(i)], sum, 1e-5 * static_cast<double>(k)) << isa << " " << m << " x " << n << " x " << k;
          }
        }
      }
  }
}

}  // namespace
}  // namespace hlat
