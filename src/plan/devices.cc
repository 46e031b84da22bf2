#include "plan/devices.h"

#include "base/error.h"

namespace hlat {

const std::vector<DeviceSpec>& known_devices() {
  constexpr double gib = 1073741824.0, gb = 1e9;
  static const std::vector<DeviceSpec> devices = {
      {"h200", 139.8 * gib, "NVIDIA H200 SXM, 141 GB"},       {"h100", 79.1 * gib, "NVIDIA H100 SXM, 80 GB"},
      {"a100-80", 79.2 * gib, "NVIDIA A100, 80 GB"},          {"a100-40", 39.4 * gib, "NVIDIA A100, 40 GB"},
      {"trn1", 16 * gb, "one NeuronCore of AWS trn1, 16 GB"},
  };
  return devices;
}

const DeviceSpec& find_device(std::string_view name) {
  std::string names;
  for (const DeviceSpec& d : known_devices()) {
    if (d.name == name) return d;
    names += (names.empty() ? "" : ", ") + d.name;
  }
  throw UsageError(fmt::format("--device {}: unknown device; known are {}", name, names));
}

}  // namespace hlat
