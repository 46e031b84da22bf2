// The record of kernel choices: of one rank, of all ranks, and what of it fits a machine. Broken and hostile records are refused. The CPU
// backend tells when it computes otherwise than the run that is continued. Needs no GPU.
#include "ops/kernel_choices.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "support/message_of.h"

namespace hlat {
namespace {

constexpr const char* kGpu = "NVIDIA H200, 132 multiprocessors";
constexpr const char* kLib = "cuBLASLt 13.1.0";

KernelChoices choices(const KernelsByCall& calls, const std::string& library = kLib, const std::string& device = kGpu) {
  return {{device, {{library, calls}}}};
}
std::string text(const KernelsByCall& calls) { return kernel_choices_text(choices(calls)); }
bool has(const std::string& where, const std::string& what) { return where.find(what) != std::string::npos; }

TEST(KernelChoices, AreReadAsTheyWereWritten) {
  KernelChoices all = choices({{"4x4x4 nn", "00ff"}, {"8x8x8 nt", "plain kernel"}});
  all[kGpu]["cuDNN 9.19.0"] = {{"attention forward", "eng5_k1=2"}};
  all["CPU"]["own kernels"] = {{"instruction set", "avx512"}};
  EXPECT_EQ(parse_kernel_choices(kernel_choices_text(all)), all);
  EXPECT_EQ(parse_kernel_choices(""), KernelChoices{});
}

TEST(KernelChoices, BrokenAndHostileRecordsAreRefused) {
  const std::string deep(100000, '['), long_name(5000, 'x');
  for (const std::string& json :
       {std::string("{"), std::string("[]"), std::string("7"), std::string("null"), std::string("\"text\""), std::string(R"({"gpu": 3})"),
        std::string(R"({"gpu": {"lib": []}})"), std::string(R"({"gpu": {"lib": {"call": 1}}})"),
        std::string(R"({"gpu": {"lib": {"call": {}}}})"), std::string(R"({"": {}})"),
        std::string(R"({"gpu": {"lib": {"call": "two\nlines"}}})"), std::string(R"({"\u001b[2J": {}})"), std::string("{\"gpu\xff\": {}}"),
        deep, R"({")" + long_name + R"(": {}})", R"({"gpu": {"lib": {"call": ")" + long_name + R"("}}})"}) {
    EXPECT_THROW(parse_kernel_choices(json), Error) << json.substr(0, 60);
    EXPECT_THROW(CpuBackend({.threads = 1}).use_kernel_choices(json), Error) << json.substr(0, 60);
    EXPECT_THROW(kernel_choices_for(0, R"({"common": )" + json + R"(, "differing": []})"), Error) << json.substr(0, 60);
  }
  std::string many = R"({"gpu": {"lib": {)";
  for (int i = 0; i < 70000; ++i) many += fmt::format(R"("{}": "a",)", i);
  many.back() = '}';
  EXPECT_TRUE(has(message_of([&] { parse_kernel_choices(many + "}}"); }), "more than 65536"));
}

TEST(KernelChoices, BrokenGroupsOfRanksAreRefused) {
  for (const char* groups :
       {"{}", "3", "[3]", "[{}]", R"([{"ranks": 1, "choices": {}}])", R"([{"ranks": [1], "choices": {}}])",
        R"([{"ranks": [[0]], "choices": {}}])", R"([{"ranks": [["0", 1]], "choices": {}}])", R"([{"ranks": [[0.5, 1]], "choices": {}}])",
        R"([{"ranks": [[0, 1]]}])", R"([{"ranks": [[0, 1]], "choices": 1}])"})
    EXPECT_THROW(kernel_choices_for(0, fmt::format(R"({{"common": {{}}, "differing": {}}})", groups)), Error) << groups;
  EXPECT_THROW(kernel_choices_for(0, R"({"differing": []})"), Error);
  EXPECT_THROW(kernel_choices_for(0, R"({"common": {}})"), Error);
}

// Hosts that measured for themselves: each rank gets back what it had, and where all agree nothing is kept twice.
TEST(KernelChoices, EveryRankGetsBackWhatItHad) {
  const std::string host0 = text({{"a", "1"}, {"b", "1"}}), host1 = text({{"a", "1"}, {"b", "2"}}),
                    last_stage = text({{"a", "1"}, {"c", "5"}});
  const std::vector<std::string> ranks = {host0, host0, host1, host1, last_stage, host1, ""};
  const std::string merged = merge_kernel_choices(ranks);
  for (int rank : {0, 1}) EXPECT_EQ(parse_kernel_choices(kernel_choices_for(rank, merged)), choices({{"a", "1"}, {"b", "1"}, {"c", "5"}}));
  for (int rank : {2, 3, 5})
    EXPECT_EQ(parse_kernel_choices(kernel_choices_for(rank, merged)), choices({{"a", "1"}, {"b", "2"}, {"c", "5"}}));
  EXPECT_EQ(parse_kernel_choices(kernel_choices_for(4, merged)).at(kGpu).at(kLib).at("c"), "5");
  for (int rank : {6, 7, 8000})
    EXPECT_EQ(parse_kernel_choices(kernel_choices_for(rank, merged)), choices({{"a", "1"}, {"b", "1"}, {"c", "5"}})) << "common: " << rank;
  EXPECT_TRUE(has(merged, "[[2,3],[5,5]]")) << merged;
  EXPECT_FALSE(has(merged.substr(merged.find("differing")), "\"a\"")) << "what is common is kept once: " << merged;
}

TEST(KernelChoices, RanksThatAgreeAreRecordedOnce) {
  const std::string one = text({{"a", "1"}, {"b", "1"}});
  const std::string merged = merge_kernel_choices(std::vector<std::string>(8192, one));
  EXPECT_LT(merged.size(), one.size() + 100);
  EXPECT_EQ(kernel_choices_for(8191, merged), one);
  EXPECT_EQ(parse_kernel_choices(kernel_choices_for(0, merge_kernel_choices({"", ""}))), KernelChoices{});
  EXPECT_EQ(kernel_choices_for(3, ""), "");
}

// Ranks on devices of two kinds: the keys name the device, so nothing of one overrules the other.
TEST(KernelChoices, KindsOfDevicesAreKeptApart) {
  const KernelChoices h200 = choices({{"a", "1"}}), h100 = choices({{"a", "2"}}, kLib, "NVIDIA H100, 114 multiprocessors");
  const std::string merged = merge_kernel_choices({kernel_choices_text(h200), kernel_choices_text(h100)});
  const KernelChoices first = parse_kernel_choices(kernel_choices_for(0, merged));
  EXPECT_EQ(first.at(kGpu).at(kLib).at("a"), "1");
  EXPECT_EQ(fitting_choices(first, "NVIDIA H100, 114 multiprocessors", {kLib}).kernels.at(kLib).at("a"), "2");
}

TEST(KernelChoices, OtherDevicesAndVersionsAreLeftOutAndTold) {
  KernelChoices recorded = choices({{"a", "1"}, {"b", "2"}});
  recorded[kGpu]["cuBLASLt 12.8.0"] = {{"a", "3"}};
  recorded["NVIDIA H100, 114 multiprocessors"][kLib] = {{"a", "4"}, {"b", "5"}, {"c", "6"}};
  const FittingChoices fitting = fitting_choices(recorded, kGpu, {kLib, "own kernels"});
  EXPECT_EQ(fitting.kernels, (KernelsByLibrary{{kLib, {{"a", "1"}, {"b", "2"}}}}));
  ASSERT_EQ(fitting.lines.size(), 3u);
  EXPECT_EQ(fitting.lines[0], "2 kernel choices of the checkpoint used again");
  EXPECT_TRUE(has(fitting.lines[1], "3 kernel choices of the checkpoint made for NVIDIA H100, 114 multiprocessors")) << fitting.lines[1];
  EXPECT_TRUE(has(fitting.lines[2], "1 kernel choice of the checkpoint made with cuBLASLt 12.8.0: here are cuBLASLt 13.1.0, own kernels"))
      << fitting.lines[2];
  EXPECT_TRUE(fitting_choices({}, kGpu, {kLib}).lines.empty());
}

TEST(KernelChoices, ACpuOfTheSameKindIsAsBefore) {
  CpuBackend before({.threads = 2}), after({.threads = 2});
  EXPECT_EQ(parse_kernel_choices(before.kernel_choices()).at("CPU").at("own kernels").at("instruction set"), available_isas().front());
  const auto lines = after.use_kernel_choices(before.kernel_choices());
  EXPECT_EQ(lines, (std::vector<std::string>{"3 kernel choices of the checkpoint used again"}));
  EXPECT_TRUE(after.use_kernel_choices("").empty());
}

TEST(KernelChoices, AResumeOnAnotherInstructionSetIsTold) {
  CpuBackend before({.threads = 2, .isa = "generic"});
  KernelChoices record = parse_kernel_choices(before.kernel_choices());
  record["CPU"]["own kernels"]["instruction set"] = "avx7";
  CpuBackend after({.threads = 3, .isa = "generic"});
  const std::vector<std::string> lines = after.use_kernel_choices(kernel_choices_text(record));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "1 kernel choice of the checkpoint used again");
  EXPECT_TRUE(has(lines[1], "oneDNN")) << lines[1];
  EXPECT_TRUE(has(lines[1], "threads 2 in the checkpoint's run, 3 in this one; results can differ")) << lines[1];
  EXPECT_EQ(lines[2],
            "own kernels: instruction set avx7 in the checkpoint's run, generic in this one; results can differ in their last bits");
}

TEST(KernelChoices, AnInstructionSetThatIsHereTooIsNamedAsTheRemedy) {
  if (available_isas().size() < 2) GTEST_SKIP() << "this CPU has the generic instruction set alone";
  CpuBackend before({.threads = 1, .isa = "generic"}), after({.threads = 1});
  const std::vector<std::string> lines = after.use_kernel_choices(before.kernel_choices());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(has(lines[1], "device.isa=generic repeats them")) << lines[1];
}

TEST(KernelChoices, AResumeOfAGpuRunOnACpuIsTold) {
  const std::vector<std::string> lines = CpuBackend({.threads = 1}).use_kernel_choices(text({{"a", "1"}}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(has(lines[0], std::string("made for ") + kGpu)) << lines[0];
  EXPECT_TRUE(has(lines[0], "this device is CPU")) << lines[0];
}

}  // namespace
}  // namespace hlat
