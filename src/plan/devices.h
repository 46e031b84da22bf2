// Devices a plan can be held against by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlat {

struct DeviceSpec {
  std::string name;
  double memory_bytes = 0;  // what a program can get
  std::string note;
};

const std::vector<DeviceSpec>& known_devices();
const DeviceSpec& find_device(std::string_view name);  // UsageError with the list when unknown

}  // namespace hlat
