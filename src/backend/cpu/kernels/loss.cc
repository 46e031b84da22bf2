// Cross-entropy over a shard of the vocabulary: {max, sum exp, target logit} per row, and softmax minus one-hot. The likeliest token.
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

template <class T>
void ce_partial(float* stats, const void* logits, const int32_t* targets, int64_t rows, int64_t width, int64_t first) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = static_cast<const T*>(logits) + r * width;
    vf top = set(-__builtin_inff());
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) top = max(top, load(x + i));
    float peak = max(top);
    for (; i < width; ++i) peak = value(x[i]) > peak ? value(x[i]) : peak;
    // f32 sums of up to a few thousand positive terms, f64 across: V may be large.
    double total = 0;
    constexpr int64_t kRun = 4096;
    for (int64_t begin = 0; begin < width; begin += kRun) {
      const int64_t count = width - begin < kRun ? width - begin : kRun;
      vf acc{};
      int64_t j = begin;
      for (; j + kLanes <= begin + count; j += kLanes) acc += exp_nonpositive(load(x + j) - peak);
      total += static_cast<double>(sum(acc));
      if (j < begin + count) {
        float lane[kLanes];
        store(lane, exp_nonpositive(load_n(x + j, begin + count - j) - peak));
        for (int64_t t = 0; t < begin + count - j; ++t) total += static_cast<double>(lane[t]);
      }
    }
    const int64_t t = targets[r] - first;
    stats[3 * r] = peak;
    stats[3 * r + 1] = static_cast<float>(total);
    stats[3 * r + 2] = targets[r] >= 0 && t >= 0 && t < width ? value(x[t]) : 0.0f;
  }
}

template <class T>
void ce_bwd(void* dlogits, const void* logits, const float* stats, const int32_t* targets, int64_t rows, int64_t width, int64_t first,
            float scale) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = static_cast<const T*>(logits) + r * width;
    T* d = static_cast<T*>(dlogits) + r * width;
    if (targets[r] < 0) {
      std::memset(d, 0, static_cast<size_t>(width) * sizeof(T));
      continue;
    }
    const float peak = stats[3 * r], factor = scale / stats[3 * r + 1];
    const int64_t t = targets[r] - first;
    // The target column is made in f32 before rounding: softmax near 1 would otherwise lose the difference.
    const bool here = t >= 0 && t < width;
    const float at_target = here ? exp_nonpositive(set(value(x[t]) - peak))[0] * factor - scale : 0.0f;
    lanes(width, [&](int64_t i, int64_t m) { store_part(d + i, exp_nonpositive(load_part(x + i, m) - peak) * factor, m); });
    if (here) store_n(d + t, set(at_target), 1);
  }
}

template <class T, class Wanted>
int64_t first_place(const T* x, int64_t width, const Wanted& wanted) {
  for (int64_t i = 0; i < width; ++i)
    if (wanted(value(x[i]))) return i;
  return 0;
}

// A comparison with NaN is false, so a row's lanes are also looked at for it.
template <class T>
void argmax(int32_t* places, float* values, const void* rows_of, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = static_cast<const T*>(rows_of) + r * width;
    vf top = set(-__builtin_inff());
    vi bad{};
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      const vf v = load(x + i);
      top = max(top, v);
      bad |= v != v;
    }
    float peak = max(top);
    bool nan = false;
    for (int k = 0; k < kLanes; ++k) nan |= bad[k] != 0;
    for (; i < width; ++i) {
      peak = value(x[i]) > peak ? value(x[i]) : peak;
      nan |= value(x[i]) != value(x[i]);
    }
    const int64_t place = first_place(x, width, [&](float v) { return nan ? v != v : v == peak; });
    places[r] = static_cast<int32_t>(place);
    values[r] = value(x[place]);
  }
}

}  // namespace

void fill_loss(CpuKernels& k) {
  k.ce_partial[0] = ce_partial<float>;
  k.ce_partial[1] = ce_partial<b16>;
  k.argmax[0] = argmax<float>;
  k.argmax[1] = argmax<b16>;
  k.ce_bwd[0] = ce_bwd<float>;
  k.ce_bwd[1] = ce_bwd<b16>;
}

}  // namespace hlat::HLAT_ISA
