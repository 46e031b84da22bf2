// The frequencies of rotary position embedding, and how they are stretched so that a model reads longer texts than it was trained on. One
// formula for the host and for GPU kernels, in double.
//
//   linear   every frequency is divided by the factor: positions are interpolated (Chen et al. 2023)
//   llama3   only waves that turn seldom within the original length are: below low_turns times by the whole factor, above high_turns times
//            not at all, in between by a mean of both (Llama 3.1)
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define HLAT_HOST_DEVICE __host__ __device__
#else
#define HLAT_HOST_DEVICE
#endif

namespace hlat {

struct ModelConfig;

enum class RopeScaling : uint8_t { none, linear, llama3 };

struct RopeFrequencies {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  double low_turns = 1, high_turns = 4;  // llama3
  double original_len = 8192;            // llama3

  // Radians per token of the element pair i of a head.
  HLAT_HOST_DEVICE double at(int64_t i, int64_t head_dim) const {
    const double plain = pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    if (scaling == RopeScaling::none) return plain;
    if (scaling == RopeScaling::linear) return plain / factor;
    constexpr double kTurn = 6.283185307179586476925286766559;
    const double kept = (original_len * plain / kTurn - low_turns) / (high_turns - low_turns);
    const double share = kept < 0 ? 0 : kept > 1 ? 1 : kept;
    return share * plain + (1 - share) * plain / factor;
  }
};

RopeFrequencies rope_frequencies(const ModelConfig& model);

}  // namespace hlat
