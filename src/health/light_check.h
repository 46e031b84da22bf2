// Known answers between steps: every parallel.health_every steps a small product on the device whose bits are known (known_product.h), a
// small sum over each axis of the mesh, and rows of the table of RoPE (rope_check.h). They find a device or a transport that has begun to
// go wrong, and a stage that turns queries and keys by other angles, where no replica would show it: also in a run of one rank. A wrong
// answer ends the run on all ranks, with the rank and host that found it. Buffers come from the io region when this is made, and the room
// for the product's scratch from the temp region, in a dry run as in a real one: a step with a check takes what is planned.
#pragma once

#include <string>
#include <vector>

#include "health/known_product.h"
#include "health/rope_check.h"
#include "ops/device.h"
#include "parallel/mesh.h"
#include "tensor/region.h"

namespace hlat {

class LightCheck {
 public:
  // every: steps between checks, 0 for never. dtype: of the factors.
  LightCheck(const Mesh& mesh, DType dtype, int64_t every, Ops& ops, Device& device, Memory& memory);

  void watch_rope(Tensor table /*(T, E)*/, const RopeFrequencies& frequencies) { rope_ = table, frequencies_ = frequencies; }

  bool due(int64_t step) const { return every_ > 0 && step % every_ == 0; }  // the same answer on all ranks
  // Collective over the mesh. NumericalError on all ranks, which names the lowest rank with a wrong answer.
  void check(int64_t step);

 private:
  static constexpr int64_t kSize = 64, kSum = 64, kRopeRows = 64;
  std::string product();  // words on what is wrong; empty: nothing
  std::string sums();
  std::string sum(Axis axis);
  std::string rope();

  const Mesh& mesh_;
  Ops& ops_;
  Device& device_;
  int64_t every_;
  KnownProduct known_;
  std::vector<std::byte> host_a_, host_b_;
  std::vector<float> host_c_;
  Tensor a_, b_, c_;  // (kSize, kSize)
  Tensor sum_;        // (kSum) f32
  Tensor rope_;       // (T, E); undefined: not looked at
  RopeFrequencies frequencies_;
};

}  // namespace hlat
