// What a program in the sandbox sees of the host's file system: the system's programs and libraries, and the devices that
// every program may use. No home, no /etc but what the loader needs, no /proc, no /sys, no sockets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hlat::sandbox {

struct Place {
  enum class Kind : uint8_t { folder, file, device, link };
  Kind kind;
  std::string source;  // on the host; of a link: what it names
  std::string target;  // below the new root, without its slash
};

// In the order in which they can be made. `root`: where the host's are found.
std::vector<Place> system_view(const std::filesystem::path& root = "/");

// The interpreter that the view contains. UsageError: there is none.
std::string find_python(const std::filesystem::path& root = "/");

}  // namespace hlat::sandbox
