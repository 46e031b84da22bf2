// The command line around the configuration: what is printed where, and the exit codes.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

TEST(CliConfig, PrintsWhatItReadsBack) {
  const RunResult first = run_binary({"config", "--config", nano_config(), "train.steps=77", "run.dir=with 'quotes' and \"more\""});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  EXPECT_NE(first.out.find("\n  steps: 77\n"), std::string::npos) << first.out;
  const TempDir dir;
  const RunResult second = run_binary({"config", "--config", dir.write("config.yaml", first.out)});
  EXPECT_EQ(second.out, first.out) << second.err;
}

TEST(CliConfig, AutomaticVocabIsPrintedAsTheNumberThatTheTokenizerGives) {
  const RunResult r = run_binary({"config", "--config", nano_config(), "--json", "model.vocab=auto", "data.sources[0].path=none.txt",
                                  "data.tokenizer=" + source_path("tests/fixtures/tokenizer/gpt2.json")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(r.out)["model"]["vocab"], 448);  // of 420 tokens
}

TEST(CliConfig, JsonIsOneObject) {
  const RunResult r = run_binary({"config", "--config", nano_config(), "--json", "optim.lr=0.5"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const nlohmann::json printed = nlohmann::json::parse(r.out);
  EXPECT_EQ(printed["optim"]["lr"], 0.5);
  EXPECT_EQ(printed["model"]["preset"], "nano");
}

TEST(CliConfig, TakesEveryCommandOfTheReadme) {
  const std::string readme = slurp(source_path("README.md"));
  const std::regex command("--config (configs/[^ ]+)([^#\\n]*)"), override("[a-z_]+\\.[a-z_]+=[^ ]+");
  int commands = 0;
  for (std::sregex_iterator c(readme.begin(), readme.end(), command), end; c != end; ++c, ++commands) {
    std::vector<std::string> args = {"config", "--config", source_path("") + (*c)[1].str()};
    const std::string rest = (*c)[2];
    for (std::sregex_iterator o(rest.begin(), rest.end(), override); o != end; ++o) args.push_back(o->str());
    const RunResult r = run_binary(args);
    EXPECT_EQ(r.exit_code, 0) << c->str() << "\n" << r.err;
  }
  EXPECT_GE(commands, 6);
}

TEST(CliConfig, ReferenceIsTheCommittedPage) {
  const RunResult r = run_binary({"config", "--reference"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, slurp(source_path("docs/config.md")));
}

TEST(CliConfig, KeysListsEveryKeyOfTheJson) {
  const RunResult help = run_binary({"config", "--keys"});
  ASSERT_EQ(help.exit_code, 0) << help.err;
  const nlohmann::json printed = nlohmann::json::parse(run_binary({"config", "--json"}).out);
  ASSERT_FALSE(printed.empty());
  for (const auto& [section, keys] : printed.items()) {
    for (const auto& [key, value] : keys.items()) {
      EXPECT_NE(("\n" + help.out).find("\n  " + section + "." + key + "="), std::string::npos) << section << "." << key;
    }
  }
}

TEST(CliConfig, KeysOfASectionAndOfOneKey) {
  const RunResult section = run_binary({"config", "--keys", "optim"});
  EXPECT_EQ(section.exit_code, 0) << section.err;
  EXPECT_NE(section.out.find("optim.lr="), std::string::npos) << section.out;
  EXPECT_EQ(section.out.find("train.steps="), std::string::npos) << section.out;
  const RunResult key = run_binary({"config", "--keys", "train.precision"});
  for (const char* text : {"default: fp32", "must be: one of fp32", "| bf16_sr |"})
    EXPECT_NE(key.out.find(text), std::string::npos) << text << "\n" << key.out;
  const RunResult wrong = run_binary({"config", "--keys", "optm"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err, "--keys optm: unknown section; did you mean optim?\n");
}

TEST(CliConfig, BadInputEndsWithTwoAndWritesNothing) {
  const TempDir dir;
  dir.write("c.yaml", "train:\n  steps: ten\n  seq_len: 8\nmodle: {}\n");
  const RunResult r = run_binary({"config", "--config", "c.yaml", "run.dir=made", "optim.lr=-1"}, dir.path());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.err,
            "c.yaml:2: train.steps = ten: must be an integer from 1 to 2147483647\n"
            "c.yaml:4: modle: unknown section; did you mean model?\n"
            "command line: optim.lr = -1: must be a number above 0 and at most 100\n");
  EXPECT_FALSE(std::filesystem::exists(dir.path("made")));
}

TEST(CliConfig, WrongWordsEndWithTwo) {
  const std::vector<std::vector<std::string>> lines = {
      {"config", "--config", "/nowhere/c.yaml"},
      {"config", "--config", ""},
      {"config", "--config"},
      {"config", "--frob"},
      {"config", "--config", nano_config(), "train"},
      {"frobnicate"},
      {"config", "--json", "--reference"},
  };
  for (const auto& line : lines) {
    const RunResult r = run_binary(line);
    EXPECT_EQ(r.exit_code, 2) << line.back();
    EXPECT_EQ(r.out, "") << line.back();
    EXPECT_NE(r.err, "") << line.back();
  }
}

TEST(Cli, HelpAndVersion) {
  const RunResult version = run_binary({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.find("hlat "), 0u) << version.out;
  const RunResult bare = run_binary({});
  EXPECT_EQ(bare.exit_code, 0);
  EXPECT_EQ(bare.out, run_binary({"--help"}).out);
  EXPECT_NE(bare.out.find("config"), std::string::npos);
}

}  // namespace
}  // namespace hlat::test
