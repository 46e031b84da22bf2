// hlat ckpt import and export as a user runs them.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

const std::string kFixtures = source_path("tests/fixtures/hf/");

TEST(CliCkptHf, ImportSaysHowARunStartsWithIt) {
  const TempDir dir;
  const RunResult r = run_binary({"ckpt", "import", kFixtures + "gqa", dir.path("in")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.out.find(dir.path("in/step_0") + ": LlamaForCausalLM, 17.9k parameters, f32, "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("\n  rope_scaling: llama3\n  rope_factor: 8.0\n"), std::string::npos) << r.out;
  EXPECT_EQ(r.err, "");
  // The lines are a config that loads, but for the tokenizer: there is none in the fixture.
  const std::string config = dir.write("c.yaml", r.out.substr(r.out.find("\n\n") + 2));
  const RunResult loaded = run_binary({"config", "--config", config, "--json"});
  ASSERT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_EQ(nlohmann::json::parse(loaded.out)["checkpoint"]["init_from"], dir.path("in"));
}

TEST(CliCkptHf, ExportOfAnImportAsJson) {
  const TempDir dir;
  const RunResult in = run_binary({"ckpt", "import", kFixtures + "tied", dir.path("in"), "--json"});
  ASSERT_EQ(in.exit_code, 0) << in.err;
  EXPECT_EQ(nlohmann::json::parse(in.out)["checkpoint"], dir.path("in/step_0"));
  const RunResult out = run_binary({"ckpt", "export", dir.path("in"), dir.path("out"), "--dtype", "f32", "--shard-size", "16KB", "--json"});
  ASSERT_EQ(out.exit_code, 0) << out.err;
  const auto printed = nlohmann::json::parse(out.out);
  EXPECT_GT(printed["weight_files"].size(), 1u);
  EXPECT_EQ(printed["notes"], nlohmann::json{"there is no tokenizer to export: the run named none"});
  for (const auto& file : printed["weight_files"]) EXPECT_TRUE(std::filesystem::exists(dir.path("out/" + file.get<std::string>()))) << file;
  EXPECT_EQ(nlohmann::json::parse(slurp(dir.path("out/config.json")))["eos_token_id"], 2);
  const RunResult again = run_binary({"ckpt", "export", dir.path("in"), dir.path("out")});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_EQ(again.err, dir.path("out") + " exists already; give a folder that does not\n");
}

TEST(CliCkptHf, ANameWithoutAFolderIsOneInTheWorkingFolder) {
  const TempDir dir;
  const RunResult in = run_binary({"ckpt", "import", kFixtures + "mha", "in"}, dir.path());
  ASSERT_EQ(in.exit_code, 0) << in.err;
  const RunResult out = run_binary({"ckpt", "export", "in", "out folder"}, dir.path());
  ASSERT_EQ(out.exit_code, 0) << out.err;
  EXPECT_TRUE(std::filesystem::exists(dir.path("out folder/config.json")));
}

TEST(CliCkptHf, ARefusalIsAUsageErrorThatNamesTheFile) {
  const TempDir dir;
  dir.write("config.json", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"})");
  const RunResult r = run_binary({"ckpt", "import", dir.path(), dir.path("in")});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.err,
            dir.path("config.json") + ": architecture Qwen3ForCausalLM is not supported: it normalizes queries and keys (QK-norm)\n");
}

TEST(CliCkptHf, HelpSaysHowMuchMemory) {
  for (const char* command : {"import", "export"}) {
    const RunResult r = run_binary({"ckpt", command, "--help"});
    EXPECT_EQ(r.exit_code, 0);
    EXPECT_NE(r.out.find("\nMemory: "), std::string::npos) << r.out;
  }
}

}  // namespace
}  // namespace hlat::test
