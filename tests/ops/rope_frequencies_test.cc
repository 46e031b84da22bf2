// Stretched rotary frequencies are those of the `transformers` library (5.22, modeling_rope_utils, in f32), and those of the reference
// ops; without scaling they are the plain powers, to the bit.
#include "ops/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/config.h"
#include "ops/ref_ops.h"
#include "support/host_memory.h"

namespace hlat {
namespace {

struct Case {
  RopeFrequencies frequencies;
  std::vector<double> expected;  // of a head with 16 elements
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{.scaling = RopeScaling::linear, .factor = 3},
       {0.3333333432674408, 0.10540925711393356, 0.03333333507180214, 0.010540925897657871, 0.003333333181217313, 0.0010540926596149802,
        0.0003333333588670939, 0.0001054092645063065}},
      {{.scaling = RopeScaling::llama3, .factor = 8, .low_turns = 1, .high_turns = 4, .original_len = 64},
       {1.0, 0.24438458681106567, 0.013042256236076355, 0.0039528473280370235, 0.0012499999720603228, 0.00039528473280370235,
        0.0001250000059371814, 3.9528473280370235e-05}},
      // Llama 3.2
      {{.theta = 500000, .scaling = RopeScaling::llama3, .factor = 32, .low_turns = 1, .high_turns = 4, .original_len = 8192},
       {1.0, 0.193922758102417, 0.03760603070259094, 0.00729266507551074, 0.000429556705057621, 8.570255886297673e-06,
        1.6619674170215148e-06, 3.2229328894572973e-07}},
  };
  return all;
}

TEST(RopeFrequencies, LinearAndLlama3AreThoseOfTransformers) {
  for (const Case& c : cases())
    for (size_t i = 0; i < c.expected.size(); ++i) {
      const double have = c.frequencies.at(static_cast<int64_t>(i), 16);
      EXPECT_NEAR(have, c.expected[i], 2e-6 * c.expected[i]) << "pair " << i;
    }
}

// Row 1 of a table is the cosine and sine of the frequencies themselves.
TEST(RopeFrequencies, TheReferenceOpsStretchLikewise) {
  HostMemory memory;
  Region temp = memory.region(Purpose::temp, 1 << 16);
  RefOps ops(temp);
  for (const Case& c : cases()) {
    const Tensor table = memory.zeros(DType::f64, {2, 16});
    ops.rope_table(table, c.frequencies);
    for (size_t i = 0; i < 8; ++i) {
      const double f = c.frequencies.at(static_cast<int64_t>(i), 16);
      EXPECT_NEAR(table.as<double>()[16 + i], std::cos(f), 1e-14);
      EXPECT_NEAR(table.as<double>()[24 + i], std::sin(f), 1e-14 * std::sin(f));
    }
  }
}

TEST(RopeFrequencies, WithoutScalingTheyArePlainPowers) {
  for (const int64_t head_dim : {2, 64, 128})
    for (int64_t i = 0; i < head_dim / 2; ++i)
      EXPECT_EQ(RopeFrequencies{}.at(i, head_dim), std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
}

TEST(RopeFrequencies, ComeFromTheConfig) {
  ModelConfig m;
  EXPECT_EQ(rope_frequencies(m).scaling, RopeScaling::none);
  m.rope_scaling = "linear";
  m.rope_factor = 2;
  EXPECT_EQ(rope_frequencies(m).scaling, RopeScaling::linear);
  EXPECT_EQ(rope_frequencies(m).factor, 2);
  m.rope_theta = 5e5;
  m.rope_scaling = "llama3";
  m.rope_low_freq_factor = 1.5;
  m.rope_high_freq_factor = 5;
  m.rope_original_len = 4096;
  const RopeFrequencies f = rope_frequencies(m);
  EXPECT_EQ(f.scaling, RopeScaling::llama3);
  EXPECT_EQ(f.theta, 5e5);
  EXPECT_EQ(f.low_turns, 1.5);
  EXPECT_EQ(f.high_turns, 5);
  EXPECT_EQ(f.original_len, 4096);
}

}  // namespace
}  // namespace hlat
