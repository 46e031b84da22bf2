// What the driver tells of a GPU's state, through NVIDIA's management library where the machine has it. It is loaded when asked for; the
// few types and numbers of its interface that are needed are declared here, and no header of it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace hlat {

struct GpuState {
  std::optional<uint64_t> corrected, uncorrected;  // ECC errors since the driver was loaded
  std::optional<uint64_t> total_uncorrected;       // over the GPU's life
  std::optional<uint64_t> remapped_rows;           // that replace bad memory
  bool remap_failed = false;
  std::optional<uint64_t> slowed_by;  // bits, see slowed_text
  std::optional<unsigned> celsius, watts, limit_watts, sm_mhz, max_sm_mhz;
};

// Words for the reasons of which a sound GPU has none: heat, power. Being idle, clocks that somebody set and the ordinary power limit are
// not.
std::string slowed_text(uint64_t reasons);
// "GPU-8f3a..." as NVIDIA's library writes the name of a GPU, from ours without dashes.
std::string dashed_uuid(const std::string& id);

class Nvml {
 public:
  Nvml();  // library() is null and why() says so where it cannot be used
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool usable() const { return library_ != nullptr; }
  const std::string& why() const { return why_; }
  // By Backend::device_id(); nothing where the library does not know the GPU.
  std::optional<GpuState> state(const std::string& device_id) const;

 private:
  void* library_ = nullptr;
  std::string why_;
};

}  // namespace hlat
