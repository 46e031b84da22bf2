// hlat check alone: one process, parts, and words that are wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

std::string config_in(const TempDir& dir) {
  return dir.write("c.yaml", "model: {layers: 1, hidden: 64, heads: 2, vocab: 512}\ndevice: {backend: cpu}\n");
}

TEST(CheckCli, OneProcessIsWell) {
  const TempDir dir;
  const RunResult r = run_binary({"check", "--config", config_in(dir), "--short", "run.dir=" + dir.path("run")}, dir.path());
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const char* part : {"versions: ", "clock: ", "space: ", "disk: ", "memory: ", "matmul: ", "gpu: ", "comm: "})
    EXPECT_NE(r.out.find(part), std::string::npos) << part;
  EXPECT_TRUE(r.out.ends_with("the rank is well\n")) << r.out;
  EXPECT_FALSE(std::filesystem::exists(dir.path("run")));
}

TEST(CheckCli, PartsCanBeChosen) {
  const TempDir dir;
  const RunResult r = run_binary({"check", "--config", config_in(dir), "--short", "--only", "clock,space", "--json"}, dir.path());
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_TRUE(j.contains("space"));
  EXPECT_FALSE(j.contains("matmul"));
}

TEST(CheckCli, AFolderThatCannotBeWrittenIsAFault) {
  const TempDir dir;
  const RunResult r = run_binary({"check", "--config", config_in(dir), "--short", "--only", "disk", "run.dir=/proc/run"}, dir.path());
  EXPECT_EQ(r.exit_code, 4) << r.out << r.err;
  EXPECT_NE(r.out.find("disk failing: /proc: "), std::string::npos) << r.out;
}

TEST(CheckCli, WrongWordsAreRefused) {
  const TempDir dir;
  const std::string config = config_in(dir);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--only", "mathmul"}, "'mathmul' is no part of the check; did you mean matmul?"},
      {{"--short", "--minutes", "2"}, "--short"},
      {{"--minutes", "0"}, "--minutes"},
      {{"no.such=1"}, "no.such"},
  };
  for (const auto& [words, message] : cases) {
    std::vector<std::string> args = {"check", "--config", config};
    args.insert(args.end(), words.begin(), words.end());
    const RunResult r = run_binary(args, dir.path());
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_NE(r.err.find(message), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace hlat::test
