// Whether the plan of a rank fits the memory that it may take. Regions lie on the device; what communication, the loader, the staging of
// saves and the process itself take lies on the host, which is the same memory where the device is the CPU.
#pragma once

#include <limits>
#include <string>

#include "config/config.h"
#include "model/rank_plan.h"

namespace hlat {

// The host's memory for one rank, outside the regions.
struct HostLines {
  size_t communication = 0;
  size_t loader = 0;   // rows that are ready, on ranks that read batches
  size_t process = 0;  // code, libraries, their tables and buffers
  size_t staging = 0;  // of saves
  size_t total() const { return communication + loader + process + staging; }
};
// available: bytes of the host for all of them; it decides about staging where the config leaves that open.
HostLines host_lines(const Config& config, const RankPlan& plan, double available = std::numeric_limits<double>::infinity());

struct Fit {
  std::string device;    // "this machine" or a known name
  double available = 0;  // bytes for one rank
  bool on_host = false;  // the device is the host: its lines count here too
  // Where it is not: bytes of the host for one rank; unlimited where the host is not known.
  double host_available = std::numeric_limits<double>::infinity();
  double resident = 0;  // of the process, taken already: not available, and not to come

  HostLines lines(const Config& config, const RankPlan& plan) const;
  double needed(const Config& config, const RankPlan& plan) const;       // of the device
  double host_needed(const Config& config, const RankPlan& plan) const;  // of a host that is not the device
  bool fits(const Config& config, const RankPlan& plan) const;

 private:
  double still_to_come(const HostLines& lines) const;
};

}  // namespace hlat
