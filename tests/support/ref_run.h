// The model's own layers on the double-precision reference backend.
#pragma once

#include "backend/cpu/cpu_backend.h"
#include "backend/null/null_backend.h"
#include "model/placed_model.h"
#include "ops/ref_ops.h"
#include "support/one_rank.h"
#include "train/train_step.h"

namespace hlat {

inline Precision f64_precision() {
  return {.compute = DType::f64, .weight = DType::f64, .master = false, .moment = DType::f64, .grad = DType::f64};
}

class RefBackend final : public Backend {
 public:
  Device& device() override { return device_; }
  std::unique_ptr<Ops> make_ops(Region& temp) override { return std::make_unique<RefOps>(temp); }
  std::string describe() const override { return "reference"; }

 private:
  CpuDevice device_;
};

class RefRun {
 public:
  explicit RefRun(const Config& config)
      : mesh_(one_rank(config)),
        plan_(measure(with_one_rank(config), mesh_)),
        model_(with_one_rank(config), f64_precision(), mesh_, backend_, &plan_, ParamUse::training) {
    model_.executor().init_weights();
  }
  Executor& executor() { return model_.executor(); }
  Device& device() { return backend_.device(); }

 private:
  static MemoryPlan measure(const Config& config, const Mesh& mesh) {
    NullBackend backend(nullptr);
    PlacedModel model(config, f64_precision(), mesh, backend, nullptr, ParamUse::training);
    TrainStep(model.executor()).run(1, 0, nullptr);
    return model.high_water();
  }

  RefBackend backend_;
  Mesh mesh_;
  MemoryPlan plan_;
  PlacedModel model_;
};

}  // namespace hlat
