// The model's own layers on the double-precision reference backend.
#pragma once

#include "backend/cpu/cpu_backend.h"
#include "backend/null/null_ops.h"
#include "ops/ref_ops.h"
#include "support/one_rank.h"
#include "train/step_runner.h"

namespace hlat {

inline Precision f64_precision() {
  return {.compute = DType::f64, .weight = DType::f64, .master = false, .moment = DType::f64, .grad = DType::f64, .stochastic = false};
}

class RefRun {
 public:
  explicit RefRun(const Config& config)
      : mesh_(one_rank(config)),
        memory_(device_, measure(with_one_rank(config), mesh_)),
        ops_(memory_.memory()[Purpose::temp]),
        runner_(with_one_rank(config), f64_precision(), mesh_, memory_.memory(), ops_, &device_) {
    runner_.init_weights();
  }
  StepRunner& runner() { return runner_; }
  Device& device() { return device_; }

 private:
  static MemoryPlan measure(const Config& config, const Mesh& mesh) {
    Memory memory;
    NullOps ops(memory[Purpose::temp]);
    StepRunner(config, f64_precision(), mesh, memory, ops, nullptr).step(1, 0, {});
    return memory.high_water();
  }

  CpuDevice device_;
  Mesh mesh_;
  PlannedMemory memory_;
  RefOps ops_;
  StepRunner runner_;
};

}  // namespace hlat
