#include "burnin/nvml.h"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "base/shared_library.h"

namespace hlat {

namespace {

using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kCorrected = 0, kUncorrected = 1;  // kinds of errors
constexpr int kSinceDriver = 0, kOfLife = 1;     // counters
constexpr int kGpuSensor = 0, kSmClock = 1;

template <class... Args>
bool call(void* library, const char* name, Args... args) {
  using Function = int (*)(Args...);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym gives
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr && function(args...) == kNvmlSuccess;
}

template <class Number, class Reading, class... Args>
void read_number(std::optional<Number>& to, void* library, const char* name, Reading scale, NvmlDevice device, Args... args) {
  Reading value = 0;
  if (call(library, name, device, args..., &value)) to = static_cast<Number>(value / scale);
}

}  // namespace

std::string slowed_text(uint64_t reasons) {
  constexpr std::array<std::pair<uint64_t, const char*>, 4> kReasons = {
      {{0x08, "hardware slowdown"}, {0x20, "too hot (driver)"}, {0x40, "too hot (hardware)"}, {0x80, "power brake"}}};
  std::string words;
  for (const auto& [bit, text] : kReasons)
    if ((reasons & bit) != 0) words += (words.empty() ? "" : ", ") + std::string(text);
  return words;
}

std::string dashed_uuid(const std::string& id) {
  constexpr size_t kPrefix = 4, kDigits = 32;  // "GPU-"
  if (id.size() != kPrefix + kDigits) return id;
  const std::string d = id.substr(kPrefix);
  return id.substr(0, kPrefix) + d.substr(0, 8) + "-" + d.substr(8, 4) + "-" + d.substr(12, 4) + "-" + d.substr(16, 4) + "-" + d.substr(20);
}

Nvml::Nvml() {
  void* library = open_library("libnvidia-ml.so.1", "/usr/lib/wsl/lib", why_);
  if (library == nullptr) return;
  if (call(library, "nvmlInit_v2"))
    library_ = library;
  else
    why_ = "NVML finds no driver";
}

Nvml::~Nvml() {
  if (library_ != nullptr) call(library_, "nvmlShutdown");
}

std::optional<GpuState> Nvml::state(const std::string& device_id) const {
  NvmlDevice device = nullptr;
  const std::string uuid = dashed_uuid(device_id);
  if (library_ == nullptr || !call(library_, "nvmlDeviceGetHandleByUUID", uuid.c_str(), &device)) return {};
  GpuState s;
  using Wide = unsigned long long;  // NOLINT(google-runtime-int): the library's own
  read_number(s.corrected, library_, "nvmlDeviceGetTotalEccErrors", Wide{1}, device, kCorrected, kSinceDriver);
  read_number(s.uncorrected, library_, "nvmlDeviceGetTotalEccErrors", Wide{1}, device, kUncorrected, kSinceDriver);
  read_number(s.total_uncorrected, library_, "nvmlDeviceGetTotalEccErrors", Wide{1}, device, kUncorrected, kOfLife);
  read_number(s.slowed_by, library_, "nvmlDeviceGetCurrentClocksThrottleReasons", Wide{1}, device);
  read_number(s.celsius, library_, "nvmlDeviceGetTemperature", 1u, device, kGpuSensor);
  read_number(s.watts, library_, "nvmlDeviceGetPowerUsage", 1000u, device);
  read_number(s.limit_watts, library_, "nvmlDeviceGetEnforcedPowerLimit", 1000u, device);
  read_number(s.sm_mhz, library_, "nvmlDeviceGetClockInfo", 1u, device, kSmClock);
  read_number(s.max_sm_mhz, library_, "nvmlDeviceGetMaxClockInfo", 1u, device, kSmClock);
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (call(library_, "nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed)) {
    s.remapped_rows = corrected + uncorrected;
    s.remap_failed = failed != 0;
  }
  return s;
}

}  // namespace hlat
