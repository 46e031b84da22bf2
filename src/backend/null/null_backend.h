// A backend without memory or arithmetic: the real code of a step runs on it, and what it asks for is the plan.
#pragma once

#include "backend/null/null_ops.h"
#include "ops/device.h"

namespace hlat {

class NullDevice final : public Device {
 public:
  std::byte* allocate(size_t /*bytes*/) override { return nullptr; }
  void free(std::byte* /*p*/) override {}
  void upload(Tensor /*dst*/, const void* /*host*/) override {}
  void download(void* /*host*/, Tensor /*src*/) override {}  // the host's values stay as they are
  size_t memory_available() const override { return 0; }
};

class NullBackend final : public Backend {
 public:
  // scratch_model: as NullOps takes it.
  explicit NullBackend(const Ops* scratch_model) : scratch_model_(scratch_model) {}
  Device& device() override { return device_; }
  std::unique_ptr<Ops> make_ops(Region& temp) override { return std::make_unique<NullOps>(temp, scratch_model_); }
  std::string describe() const override { return "null"; }

 private:
  NullDevice device_;
  const Ops* scratch_model_;
};

}  // namespace hlat
