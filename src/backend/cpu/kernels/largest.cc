// The largest value of a tensor, or the largest absolute value. A comparison with NaN is false, so lanes are also looked at for it.
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

inline vf magnitude(vf v) { return reinterpret_cast<vf>(reinterpret_cast<vu>(v) & 0x7fffffffu); }

template <class T>
float largest(const void* values, int64_t n, bool absolute) {
  const T* x = static_cast<const T*>(values);
  vf top = set(-__builtin_inff());
  vi bad{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const vf v = load(x + i), shown = absolute ? magnitude(v) : v;
    top = max(top, shown);
    bad |= v != v;
  }
  float peak = max(top);
  bool nan = false;
  for (int k = 0; k < kLanes; ++k) nan |= bad[k] != 0;
  for (; i < n; ++i) {
    const float v = value(x[i]), shown = absolute && v < 0 ? -v : v;
    peak = shown > peak ? shown : peak;
    nan |= v != v;
  }
  return nan ? __builtin_nanf("") : peak;
}

}  // namespace

void fill_largest(CpuKernels& k) {
  k.largest[0] = largest<float>;
  k.largest[1] = largest<b16>;
}

}  // namespace hlat::HLAT_ISA
