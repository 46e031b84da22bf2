// The CPU as a Device: host memory in huge pages where the system gives them.
#pragma once

#include <map>

#include "backend/cpu/cpu_ops.h"
#include "ops/device.h"
#include "ops/kernel_choices.h"

namespace hlat {

class CpuDevice final : public Device {
 public:
  ~CpuDevice() override;
  std::byte* allocate(size_t bytes) override;
  void free(std::byte* p) override;
  void upload(Tensor dst, const void* host) override;
  void download(void* host, Tensor src) override;
  size_t memory_available() const override;

 private:
  std::map<std::byte*, size_t> blocks_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(CpuOptions options) : options_(std::move(options)) {}
  Device& device() override { return device_; }
  std::unique_ptr<Ops> make_ops(Region& temp) override { return std::make_unique<CpuOps>(temp, options_); }
  std::unique_ptr<Ops> make_inference_ops(Region& temp) override;
  std::string describe() const override;
  // What the bits follow from on a CPU: instruction sets, and the number of threads, by which oneDNN may cut a product. Another record is
  // told and changes nothing: the config and the machine decide.
  std::string kernel_choices() const override;
  std::vector<std::string> use_kernel_choices(const std::string& json) override;

 private:
  KernelsByLibrary kernels() const;

  CpuOptions options_;
  CpuDevice device_;
};

}  // namespace hlat
