// AdamW in one pass. The update uses the new moments before they are rounded for storage. A measured one also tells what it changed.
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/philox.h"
#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

// Purposes of base/rng.h, which this file may not include.
constexpr uint32_t kRoundWeight = 2, kRoundMoment1 = 3, kRoundMoment2 = 4;

// Stores v in its type and returns what was stored.
inline vf store_rounded(float* p, vf v, int64_t m, NoiseReader&, int64_t, bool) {
  store_part(p, v, m);
  return v;
}
inline vf store_rounded(b16* p, vf v, int64_t m, NoiseReader& noise, int64_t element, bool stochastic) {
  const vu bits = stochastic ? bf16_bits_stochastic(v, noise.at(element)) : bf16_bits(v);
  if (m == kLanes) {
    store_bits(p, bits);
  } else {
    b16 lane[kLanes];
    store_bits(lane, bits);
    std::memcpy(p, lane, static_cast<size_t>(m) * sizeof(b16));
  }
  return reinterpret_cast<vf>(bits << 16);
}

// What an update changed, lane by lane, in f32 over short runs.
class Change {
 public:
  void add(vf old, vf kept, vf m, vf v, int64_t n) {
    if (n < kLanes) {  // lanes past the end change nothing and do not count
      mask(old, n), mask(kept, n), mask(m, n), mask(v, n);
      unchanged_ -= kLanes - n;
    }
    const vf change = kept - old;
    squares_ += change * change;
    equal_ -= kept == old;
    m_max_ = max(m_max_, select(m < 0.0f, -m, m));
    v_max_ = max(v_max_, v);
    v_min_ = -max(-v_min_, select(v > 0.0f, -v, set(-__builtin_inff())));
  }
  void end_run() {
    change_sq_ += static_cast<double>(sum(squares_));
    for (int k = 0; k < kLanes; ++k) unchanged_ += equal_[k];
    squares_ = vf{};
    equal_ = vi{};
  }
  void give(AdamwSums& s) {
    end_run();
    s.change_sq += change_sq_;
    s.unchanged += static_cast<double>(unchanged_);
    const float m = max(m_max_), v = max(v_max_), least = -max(-v_min_);
    s.m_max = m > s.m_max ? m : s.m_max;
    s.v_max = v > s.v_max ? v : s.v_max;
    s.v_min = least < s.v_min ? least : s.v_min;
  }

 private:
  static void mask(vf& v, int64_t n) {
    float lane[kLanes];
    store(lane, v);
    for (int64_t j = n; j < kLanes; ++j) lane[j] = 0;
    v = load(lane);
  }
  vf squares_{}, m_max_{}, v_max_{}, v_min_ = set(__builtin_inff());
  vi equal_{};
  double change_sq_ = 0;
  int64_t unchanged_ = 0;
};

template <class W, class M, class G, bool Measured>
double adamw(const AdamwArgs& a) {
  auto* weight = static_cast<W*>(a.weight);
  auto* m1 = static_cast<M*>(a.m);
  auto* m2 = static_cast<M*>(a.v);
  const auto* grad = static_cast<const G*>(a.grad);
  NoiseReader noise_w(a.key_weight, a.step, kRoundWeight);
  NoiseReader noise_m(a.key_weight, a.step, kRoundMoment1);
  NoiseReader noise_v(a.key_weight, a.step, kRoundMoment2);
  double total = 0;
  vf squares{};
  [[maybe_unused]] Change change;
  int64_t in_run = 0;
  lanes(a.end - a.begin, [&](int64_t offset, int64_t n) {
    const int64_t i = a.begin + offset, element = a.first_element + i;
    const vf g = load_part(grad + i, n) * a.grad_scale;
    const vf m = a.beta1 * load_part(m1 + i, n) + (1.0f - a.beta1) * g;
    const vf v = a.beta2 * load_part(m2 + i, n) + (1.0f - a.beta2) * (g * g);
    const vf update = (a.lr * a.correction1) * m / (sqrt(v) * a.correction2_rsqrt + a.eps);
    vf w = a.master ? load_part(a.master + i, n) : load_part(weight + i, n);
    [[maybe_unused]] const vf old = w;
    w = w * a.decay_factor - update;
    [[maybe_unused]] const vf kept_m = store_rounded(m1 + i, m, n, noise_m, element, a.stochastic_moments);
    [[maybe_unused]] const vf kept_v = store_rounded(m2 + i, v, n, noise_v, element, a.stochastic_moments);
    vf kept = store_rounded(weight + i, w, n, noise_w, element, a.stochastic_weights);
    if (a.master) {
      store_part(a.master + i, w, n);
      kept = w;
    }
    if (n < kLanes) {  // lanes past the end hold no weight
      float lane[kLanes];
      store(lane, kept);
      for (int64_t j = n; j < kLanes; ++j) lane[j] = 0;
      kept = load(lane);
    }
    if constexpr (Measured) change.add(old, kept, kept_m, kept_v, n);
    squares += kept * kept;
    if (++in_run == 256) {
      total += static_cast<double>(sum(squares));
      squares = vf{};
      in_run = 0;
      if constexpr (Measured) change.end_run();
    }
  });
  if constexpr (Measured) change.give(*a.sums);
  return total + static_cast<double>(sum(squares));
}

template <bool Measured>
void fill(double (*table[2][2][2])(const AdamwArgs&)) {
  table[0][0][0] = adamw<float, float, float, Measured>;
  table[0][0][1] = adamw<float, float, b16, Measured>;
  table[0][1][0] = adamw<float, b16, float, Measured>;
  table[0][1][1] = adamw<float, b16, b16, Measured>;
  table[1][0][0] = adamw<b16, float, float, Measured>;
  table[1][0][1] = adamw<b16, float, b16, Measured>;
  table[1][1][0] = adamw<b16, b16, float, Measured>;
  table[1][1][1] = adamw<b16, b16, b16, Measured>;
}

}  // namespace

void fill_adamw(CpuKernels& k) {
  fill<false>(k.adamw);
  fill<true>(k.adamw_measured);
}

}  // namespace hlat::HLAT_ISA
