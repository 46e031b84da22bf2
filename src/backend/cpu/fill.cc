// Casts, constants and random numbers: simple loops, off the hot path but for casts.
#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "base/bf16.h"
#include "base/fp8.h"

namespace hlat {

namespace {

void put(const Tensor& t, int64_t i, float value) {
  if (t.dtype == DType::bf16)
    t.as<bf16>()[i] = to_bf16(value);
  else if (t.dtype == DType::f8e4m3)
    t.as<f8e4m3>()[i] = to_e4m3(value);
  else if (t.dtype == DType::f8e5m2)
    t.as<f8e5m2>()[i] = to_e5m2(value);
  else
    t.as<float>()[i] = value;
}

}  // namespace

void CpuOps::do_cast(Tensor dst, Tensor src, Rounding rounding, NoiseKey key, const ElementMap& map) {
  const auto words = philox_key(key);
  threads_.ranges(dst.numel(), kGrain, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    if (dst.dtype == src.dtype) {
      std::memcpy(at(dst, begin), at(src, begin), static_cast<size_t>(n) * size_of(dst.dtype));
    } else if (dst.dtype == DType::f32) {
      kernels_.widen(dst.as<float>() + begin, src.as<uint16_t>() + begin, n);
    } else if (rounding == Rounding::nearest) {
      kernels_.narrow(dst.as<uint16_t>() + begin, src.as<float>() + begin, n);
    } else {
      map.for_runs(begin, end, [&](int64_t from, int64_t to, int64_t global) {
        kernels_.narrow_stochastic(dst.as<uint16_t>() + from, src.as<float>() + from, to - from, global, words.data(), key.step,
                                   static_cast<uint32_t>(key.purpose));
      });
    }
  });
}

void CpuOps::do_fill(Tensor t, double value) {
  threads_.ranges(t.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (value == 0) {  // gradients, every step: zero is all bits zero in each type
      std::memset(at(t, begin), 0, static_cast<size_t>(end - begin) * size_of(t.dtype));
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      if (t.dtype == DType::f64)
        t.as<double>()[i] = value;
      else if (t.dtype == DType::i32)
        t.as<int32_t>()[i] = static_cast<int32_t>(value);
      else
        put(t, i, static_cast<float>(value));
    }
  });
}

void CpuOps::do_fill_normal(Tensor t, double std, NoiseKey key, const ElementMap& map) {
  threads_.ranges(t.numel(), kGrain, [&](int64_t begin, int64_t end) {
    std::array<float, 4> block{};
    int64_t have = -1;
    map.for_runs(begin, end, [&](int64_t from, int64_t to, int64_t global) {
      for (int64_t i = from, e = global; i < to; ++i, ++e) {
        if (e / 4 != have) {
          have = e / 4;
          block = normal_block(key, static_cast<uint64_t>(have));
        }
        put(t, i, static_cast<float>(static_cast<double>(block[static_cast<size_t>(e % 4)]) * std));
      }
    });
  });
}

}  // namespace hlat
