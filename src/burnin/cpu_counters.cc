#include "burnin/cpu_counters.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace hlat {

namespace {

namespace fs = std::filesystem;

// The cpu line: user nice system idle iowait irq softirq steal.
void read_ticks(const fs::path& file, CpuCounters& counters) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  for (int column = 0; column < 8; ++column) {
    double ticks = 0;
    if (!(in >> ticks)) return;
    const bool idle = column == 3 || column == 4;
    if (!idle) counters.busy += ticks;
    if (column == 7) counters.stolen = ticks;
  }
}

double microseconds_after(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  std::string word;
  for (double value = 0; in >> word >> value;)
    if (word == name) return value;
  return 0;
}

}  // namespace

CpuCounters read_cpu_counters(const fs::path& root) {
  CpuCounters c;
  read_ticks(root / "proc/stat", c);
  c.throttled_s = microseconds_after(root / "sys/fs/cgroup/cpu.stat", "throttled_usec") * 1e-6;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/cpu", none)) {
    int64_t times = 0;
    std::ifstream in(entry.path() / "thermal_throttle/core_throttle_count");
    if (in >> times) c.too_hot += times;
  }
  return c;
}

std::string taken_between(const CpuCounters& before, const CpuCounters& after) {
  constexpr double kStolen = 0.05, kThrottledS = 0.05;
  std::string words;
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
  const double busy = after.busy - before.busy, stolen = after.stolen - before.stolen;
  if (busy > 0 && stolen > kStolen * busy)
    add(fmt::format("{:.0f} % of the cores' time was stolen by other virtual machines", 100 * stolen / busy));
  if (const double s = after.throttled_s - before.throttled_s; s > kThrottledS)
    add(fmt::format("a control group's limit held its cores up for {:.1f} s", s));
  if (const int64_t times = after.too_hot - before.too_hot; times > 0) add(fmt::format("cores were too hot {} times", times));
  return words;
}

}  // namespace hlat
