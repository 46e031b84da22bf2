// Available memory under made-up trees of /proc and /sys.
#include "base/memory_limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace hlat {
namespace {

constexpr size_t kMib = size_t{1} << 20;

class MemoryLimits : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const auto path = root() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void machine(size_t mib) { write("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: " + std::to_string(mib * 1024) + " kB"); }
  void v2(const std::string& group, const std::string& limit, size_t used, size_t inactive, size_t active = 0, size_t slab = 0) {
    const std::string at = "sys/fs/cgroup/" + group;
    write(at + "/memory.max", limit);
    write(at + "/memory.current", std::to_string(used));
    write(at + "/memory.stat", fmt::format("anon 1\ninactive_file {}\nactive_file {}\nslab_reclaimable {}", inactive, active, slab));
  }
  void v1(const std::string& group, size_t limit, size_t used, size_t inactive, size_t active = 0) {
    const std::string at = "sys/fs/cgroup/memory/" + group;
    write(at + "/memory.limit_in_bytes", std::to_string(limit));
    write(at + "/memory.usage_in_bytes", std::to_string(used));
    write(at + "/memory.stat", fmt::format("inactive_file 1\ntotal_inactive_file {}\ntotal_active_file {}", inactive, active));
  }
  std::filesystem::path root() const { return dir_.path(); }
  size_t available() const { return host_memory_available(root()); }

 private:
  test::TempDir dir_;
};

TEST_F(MemoryLimits, PageCacheOfAContainerIsAvailable) {
  machine(8000);
  write("proc/self/cgroup", "0::/job");
  v2("job", std::to_string(1000 * kMib), 900 * kMib, 600 * kMib);
  EXPECT_EQ(available(), 700 * kMib);
  v2("job", std::to_string(1000 * kMib), 900 * kMib, 300 * kMib, 200 * kMib, 50 * kMib);
  EXPECT_EQ(available(), 650 * kMib) << "pages in use of late and kernel tables are dropped too";
  v2("job", std::to_string(1000 * kMib), 900 * kMib, 300 * kMib, 700 * kMib);
  EXPECT_EQ(available(), 1000 * kMib) << "the figures are not of one moment";
}

TEST_F(MemoryLimits, EveryLevelOfTheNestingCounts) {
  machine(8000);
  write("proc/self/cgroup", "0::/slice/pod/container");
  v2("slice", "max", 5000 * kMib, 0);
  v2("slice/pod", std::to_string(800 * kMib), 500 * kMib, 100 * kMib);
  v2("slice/pod/container", std::to_string(2000 * kMib), 300 * kMib, 0);
  EXPECT_EQ(available(), 400 * kMib) << "the pod's limit, although the container itself may have more";
  write("sys/fs/cgroup/slice/memory.high", std::to_string(5100 * kMib));
  EXPECT_EQ(available(), 100 * kMib) << "above memory.high the kernel holds the process up";
}

TEST_F(MemoryLimits, Version1IsReadToo) {
  machine(8000);
  write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/outer/inner\n0::/");
  v1("", 0x7FFFFFFFFFFFF000, 1, 0);
  v1("outer", 600 * kMib, 500 * kMib, 50 * kMib);
  v1("outer/inner", 900 * kMib, 100 * kMib, 0);
  EXPECT_EQ(available(), 150 * kMib);
  v1("outer", 600 * kMib, 500 * kMib, 50 * kMib, 30 * kMib);
  EXPECT_EQ(available(), 180 * kMib);
}

TEST_F(MemoryLimits, ANameOfAnotherNamespaceMeansTheMount) {
  machine(8000);
  write("proc/self/cgroup", "0::/kubepods/pod7/abc");
  v2("", std::to_string(300 * kMib), 100 * kMib, 0);
  EXPECT_EQ(available(), 200 * kMib);
  write("proc/self/cgroup", "0::/../other");
  EXPECT_EQ(available(), 200 * kMib);
}

TEST_F(MemoryLimits, AGroupAboveItsLimitLeavesNothing) {
  machine(8000);
  write("proc/self/cgroup", "0::/job");
  v2("job", std::to_string(100 * kMib), 120 * kMib, 0);
  EXPECT_EQ(available(), 0u);
}

TEST_F(MemoryLimits, WithoutGroupsTheMachineTells) {
  machine(321);
  EXPECT_EQ(available(), 321 * kMib);
}

TEST_F(MemoryLimits, ResidentIsTheProcesss) {
  write("proc/self/status", "Name: x\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB");
  EXPECT_EQ(resident_bytes(root()), kMib);
  EXPECT_EQ(peak_resident_bytes(root()), 2 * kMib);
  EXPECT_GE(peak_resident_bytes(), resident_bytes());
  EXPECT_GT(resident_bytes(), 0u) << "of this very process";
}

}  // namespace
}  // namespace hlat
