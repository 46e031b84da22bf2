// The CPU as if its memory were a device's: ranks exchange tensors through copies in other host memory.
#pragma once

#include <cstring>

#include "backend/cpu/cpu_backend.h"

namespace hlat {

class HostCopies final : public CopyStream {
 public:
  std::byte* allocate_pinned(size_t bytes) override { return new std::byte[bytes]; }
  void free_pinned(std::byte* p) override { delete[] p; }
  uint64_t mark() override { return 0; }
  void wait_for(uint64_t /*mark*/) override {}
  void await(uint64_t /*mark*/) override {}
  void fetch(void* host, const void* device, size_t bytes) override { move(host, device, bytes); }
  void put(void* device, const void* host, size_t bytes) override { move(device, host, bytes); }
  void copy(void* device, const void* from, size_t bytes) override { move(device, from, bytes); }
  void finish() override {}

 private:
  static void move(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

class StagedHostBackend final : public Backend {
 public:
  explicit StagedHostBackend(std::string device_id = "a device") : id_(std::move(device_id)) {}
  std::string device_id() const override { return id_; }
  Device& device() override { return device_; }
  std::unique_ptr<Ops> make_ops(Region& temp) override { return cpu_.make_ops(temp); }
  std::string describe() const override { return cpu_.describe(); }

 private:
  class CopiedDevice final : public Device {
   public:
    explicit CopiedDevice(Device& host) : host_(host) {}
    std::byte* allocate(size_t bytes) override { return host_.allocate(bytes); }
    void free(std::byte* p) override { host_.free(p); }
    void upload(Tensor dst, const void* host) override { host_.upload(dst, host); }
    void download(void* host, Tensor src) override { host_.download(host, src); }
    size_t memory_available() const override { return host_.memory_available(); }
    std::unique_ptr<CopyStream> make_copy_stream() override { return std::make_unique<HostCopies>(); }

   private:
    Device& host_;
  };

  std::string id_;
  CpuBackend cpu_{CpuOptions{.threads = 1, .isa = "auto"}};
  CopiedDevice device_{cpu_.device()};
};

}  // namespace hlat
