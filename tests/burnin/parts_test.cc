// The parts of a check that need no peers.
#include <gtest/gtest.h>

#include <filesystem>

#include "burnin/check.h"
#include "burnin/cpu_counters.h"
#include "burnin/disk_check.h"
#include "burnin/gpu_check.h"
#include "burnin/matmul_check.h"
#include "burnin/memory_patterns.h"
#include "burnin/space_check.h"
#include "runtime/existing_folder.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

TEST(CheckParts, AreReadWithCommas) {
  EXPECT_EQ(parse_parts("disk,matmul"), (std::set<std::string>{"disk", "matmul"}));
  EXPECT_THROW(parse_parts("disk,mathmul"), UsageError);
  EXPECT_THROW(parse_parts(""), UsageError);
}

// Memory with a word for each address that the test uses.
struct FakeMemory {
  std::vector<uint64_t> words = std::vector<uint64_t>(2 * kBlockWords);
  std::function<void(std::vector<uint64_t>&)> damage = [](std::vector<uint64_t>&) {};

  std::optional<std::string> test(uint64_t& tested) {
    const auto at = [this](size_t block) { return words.begin() + static_cast<int64_t>(block * kBlockWords); };
    return test_patterns(
        {.blocks = 2,
         .write =
             [&](size_t b, std::span<const uint64_t> w) {
               std::copy(w.begin(), w.end(), at(b));
               damage(words);
             },
         .holds = [&](size_t b, std::span<const uint64_t> w) { return std::equal(w.begin(), w.end(), at(b)); },
         .read = [&](size_t b, std::span<uint64_t> w) { std::copy_n(at(b), w.size(), w.begin()); }},
        [] { return false; }, tested);
  }
};

TEST(MemoryPatterns, PassSoundMemory) {
  uint64_t tested = 0;
  EXPECT_EQ(FakeMemory().test(tested), std::nullopt);
  EXPECT_EQ(tested, kPatterns * 2 * kBlockWords * 8);
}

TEST(MemoryPatterns, FindABitThatIsStuck) {
  for (const bool high : {false, true}) {
    uint64_t tested = 0;
    FakeMemory memory{.damage = [high](std::vector<uint64_t>& w) {
      const uint64_t bit = uint64_t{1} << 17;
      w[kBlockWords + 3] = high ? w[kBlockWords + 3] | bit : w[kBlockWords + 3] & ~bit;
    }};
    const auto wrong = memory.test(tested);
    ASSERT_TRUE(wrong);
    EXPECT_NE(wrong->find(std::to_string((kBlockWords + 3) * 8)), std::string::npos) << *wrong;
  }
}

TEST(MemoryPatterns, FindAddressesThatAreOne) {
  uint64_t tested = 0;
  FakeMemory memory{.damage = [](std::vector<uint64_t>& w) { w[64] = w[kBlockWords + 64]; }};
  const auto wrong = memory.test(tested);
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("address"), std::string::npos) << *wrong;
}

TEST(Disk, IsMeasuredAndLeftAsItWas) {
  const test::TempDir dir;
  const DiskMeasured m = measure_disk(dir.path(), size_t{8} << 20, 2, false);
  EXPECT_EQ(m.words, "");
  EXPECT_GT(m.write, 0);
  EXPECT_GT(m.read, 0);
  EXPECT_GT(m.sync_s, 0);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Disk, ThatIsFullOrFailsIsNamedWithItsPath) {
  const test::TempDir dir;
  const std::string full = measure_disk(dir.path(), size_t{8} << 20, 2, true).words;
  EXPECT_EQ(full.substr(0, 5), "full:");
  EXPECT_NE(full.find(dir.path()), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  const std::string missing = measure_disk(dir.path("none"), size_t{4} << 20, 1, false).words;
  EXPECT_NE(missing.find("failing: " + dir.path("none")), std::string::npos) << missing;
}

TEST(Disk, OfAFolderToComeIsThatOfItsParent) {
  const test::TempDir dir;
  EXPECT_TRUE(std::filesystem::equivalent(existing_folder(dir.path("a/b/c")), dir.path()));
  EXPECT_TRUE(std::filesystem::equivalent(existing_folder(dir.path()), dir.path()));
}

TEST(Space, ShortOfOneCheckpointIsAFaultAndOfAllAWarning) {
  const SpaceNeeds needs{.save = 100, .kept = 400};
  EXPECT_EQ(judge_space("/d", 99, needs)->severity, Severity::fault);
  EXPECT_EQ(judge_space("/d", 399, needs)->severity, Severity::warning);
  EXPECT_FALSE(judge_space("/d", 400, needs));
  EXPECT_FALSE(judge_space("/d", 0, {}));
}

TEST(CpuCounters, TellWhatWasTaken) {
  const test::TempDir dir;
  std::filesystem::create_directories(dir.path("proc"));
  std::filesystem::create_directories(dir.path("sys/fs/cgroup"));
  std::filesystem::create_directories(dir.path("sys/devices/system/cpu/cpu0/thermal_throttle"));
  dir.write("proc/stat", "cpu  100 0 50 1000 10 0 0 20 0 0\ncpu0 1 2 3\n");
  dir.write("sys/fs/cgroup/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 3000000\n");
  dir.write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n");
  const CpuCounters c = read_cpu_counters(dir.path());
  EXPECT_DOUBLE_EQ(c.busy, 170);
  EXPECT_DOUBLE_EQ(c.stolen, 20);
  EXPECT_DOUBLE_EQ(c.throttled_s, 3);
  EXPECT_EQ(c.too_hot, 7);
  EXPECT_EQ(taken_between(c, c), "");
  EXPECT_EQ(taken_between({}, c),
            "12 % of the cores' time was stolen by other virtual machines, a control group's limit held its cores up for 3.0 s, cores were "
            "too hot 7 times");
}

TEST(Gpu, IsJudgedByItsCounters) {
  const Finding about{.part = "gpu", .rank = 1, .host = "node-b", .words = ""};
  EXPECT_TRUE(judge_gpu({}, about).empty());
  GpuState s;
  s.corrected = 3;
  s.uncorrected = 1;
  s.slowed_by = 0x40 | 0x1;
  s.remap_failed = true;
  const auto findings = judge_gpu(s, about);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(findings[0].text(), "rank 1 on node-b: gpu has 1 uncorrected ECC errors since its driver was loaded");
  EXPECT_EQ(findings[2].severity, Severity::warning);
  EXPECT_EQ(findings[3].words, "slow: too hot (hardware)");
  EXPECT_EQ(slowed_text(0x1 | 0x2 | 0x4 | 0x100), "") << "idle, clocks that were set, the ordinary power limit";
}

TEST(Gpu, NamesAreWrittenAsTheLibraryDoes) {
  EXPECT_EQ(dashed_uuid("GPU-0123456789abcdef0123456789abcdef"), "GPU-01234567-89ab-cdef-0123-456789abcdef");
  EXPECT_EQ(dashed_uuid("other"), "other");
}

TEST(MatmulMeasured, SpeedsAreThoseInTurnsOrTheLaterOnesUnderLoad) {
  MatmulMeasured m;
  m.loaded = {100, 100, 50, 50, 60, 50};
  EXPECT_DOUBLE_EQ(m.speed().typical, 50);
  EXPECT_DOUBLE_EQ(m.speed().best, 60) << "before it was warm does not count";
  m.in_turn = {90, 80, 85};
  EXPECT_DOUBLE_EQ(m.speed().best, 90);
  EXPECT_DOUBLE_EQ(m.speed().typical, 85);
}

}  // namespace
}  // namespace hlat
