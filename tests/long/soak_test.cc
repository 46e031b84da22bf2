// Minutes of a soak: a run on 4 ranks with random faults of all kinds that recover on the same mesh ends with the bits of a calm run, and
// leaves nothing behind. tools/soak.sh runs longer ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "supervise/host_processes.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSoaked = R"(model: {layers: 4, hidden: 128, heads: 8, kv_heads: 2, ffn: 168, vocab: 512}
train: {steps: 3000, seq_len: 64, global_batch: 8, micro_batch: 1}
optim: {lr: 2e-3, warmup: 2}
run: {tensorboard: false, sample_lines: 0}
device: {backend: cpu, threads: 1}
parallel: {tp: 2}
checkpoint: {every: 50}
launch: {ranks: 4, restarts: 100000}
)";

RunResult run_soak(const TempDir& dir, const std::string& name, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"launch", "--config", dir.path("soak.yaml"), "run.dir=" + dir.path(name)};
  words.insert(words.end(), more.begin(), more.end());
  return run_binary(words);
}

std::vector<nlohmann::json> soak_lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<nlohmann::json> out;
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

TEST(Soak, ARunWithRandomFaultsEndsWithTheBitsOfACalmOne) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun";
  const TempDir dir;
  dir.write("soak.yaml", kSoaked);
  const RunResult calm = run_soak(dir, "calm"), struck = run_soak(dir, "struck", {"fault.every_s=8", "fault.seed=5"});
  ASSERT_EQ(calm.exit_code, 0) << calm.err;
  ASSERT_EQ(struck.exit_code, 0) << struck.err;
  const auto faults = soak_lines(dir.path("struck/faults.jsonl")), events = soak_lines(dir.path("struck/events.jsonl"));
  EXPECT_GE(faults.size(), 4u);
  EXPECT_GE(std::count_if(events.begin(), events.end(), [](const auto& e) { return e["kind"] == "restart"; }), 3);
  const RunResult diff = run_binary({"ckpt", "diff", "--exit-code", dir.path("struck"), dir.path("calm")});
  EXPECT_EQ(diff.exit_code, 0) << diff.out;
  EXPECT_NE(struck.err.find("goodput"), std::string::npos) << struck.err;
  for (const char* run : {"calm", "struck"}) {
    const std::string prefix = run_prefix(fs::path(dir.path(run)));
    EXPECT_TRUE(processes_of(prefix).empty()) << run;
    for (const auto& entry : fs::directory_iterator("/dev/shm")) EXPECT_FALSE(entry.path().string().starts_with(prefix)) << entry.path();
    for (const auto& entry : fs::recursive_directory_iterator(dir.path(run)))
      EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace hlat::test
