#include "ops/download.h"

#include <algorithm>

#include "base/bf16.h"
#include "base/fp8.h"

namespace hlat {

std::vector<float> download_f32(Device& device, const Tensor& t) {
  std::vector<std::byte> bytes(t.bytes());
  device.download(bytes.data(), t);
  std::vector<float> values(static_cast<size_t>(t.numel()));
  const auto convert = [&](const auto* from, auto to_f32) { std::transform(from, from + values.size(), values.begin(), to_f32); };
  switch (t.dtype) {
    case DType::bf16: convert(reinterpret_cast<const bf16*>(bytes.data()), [](bf16 x) { return to_float(x); }); break;
    case DType::f8e4m3: convert(reinterpret_cast<const f8e4m3*>(bytes.data()), [](f8e4m3 x) { return to_float(x); }); break;
    case DType::f8e5m2: convert(reinterpret_cast<const f8e5m2*>(bytes.data()), [](f8e5m2 x) { return to_float(x); }); break;
    case DType::f64: convert(reinterpret_cast<const double*>(bytes.data()), [](double x) { return static_cast<float>(x); }); break;
    default: convert(reinterpret_cast<const float*>(bytes.data()), [](float x) { return x; }); break;
  }
  return values;
}

}  // namespace hlat
