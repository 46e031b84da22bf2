// What a newcomer meets on the command line: misspelt words with the nearest right one, help that fits a screen, warnings.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

TEST(CliMessages, WrongWordsGetTheNearestRightOne) {
  struct Case {
    std::vector<std::string> words;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"trian"}, "hlat: there is no command trian; did you mean train?"},
      {{"help"}, "hlat: there is no command help; run hlat --help"},
      {{"serve"},
       "hlat: there is no command serve; there are train, plan, bench, config, data, ckpt, eval, generate, runs, report, launch, check, "
       "study"},
      {{"bench", "stpe"}, "hlat bench: there is no command stpe; did you mean step?"},
      {{"data", "inspcet", "--config", nano_config()}, "hlat data: there is no command inspcet; did you mean inspect?"},
      {{"train", "--confg", nano_config()}, "hlat train: there is no option --confg; did you mean --config?"},
      {{"train", "--confg=" + nano_config()}, "hlat train: there is no option --confg; did you mean --config?"},
      {{"train", "-config", nano_config()}, "hlat train: there is no option -config; did you mean --config?"},
      {{"--train"}, "hlat: there is no option --train; the command is hlat train"},
      {{"train", "--config", nano_config(), "--config", nano_config()}, "hlat train: --config is given twice; a run has one file"},
      {{"--vresion"}, "hlat: there is no option --vresion; did you mean --version?"},
      {{"data", "sample", "--frobnicate"},
       "hlat data sample: there is no option --frobnicate; there are --help, --out, --documents, --seed, --json"},
      {{"train", "--config", nano_config(), "--train.steps=5"},
       "hlat train: there is no option --train.steps; keys of the config are given without dashes: train.steps=VALUE"},
      {{"train", "--config", nano_config(), "--lr", "1e-3"},
       "hlat train: there is no option --lr; keys of the config are given without dashes: optim.lr=VALUE"},
      {{"train", "--config", nano_config(), "--learning-rate", "1e-3"},
       "hlat train: there is no option --learning-rate; here it is optim.lr, and keys of the config are given without dashes, as "
       "section.key=value"},
      {{"train", "a.yaml"}, "hlat train: the config file is given as an option: hlat train --config a.yaml"},
      {{"config", "--config", nano_config(), "a.yaml"},
       "command line: a.yaml: must have the form section.key=value; the config file is given as --config FILE, once"},
      {{"study", "a.yaml", "--limit", "abc"}, "--limit: abc: must be a number from 0 to 1000000000\nRun with --help for more information."},
      {{"study", "a.yaml", "--at-once", "0"}, "--at-once: 0: must be a number from 1 to 4096\nRun with --help for more information."},
      {{"plan", "--config", nano_config(), "--device", "a100"},
       "--device a100: unknown device; there are h200, h100, a100-80, a100-40, trn1, and without --device this machine; did you mean "
       "h100?"},
      {{"config", "--config", source_path("configs/nanno.yaml")},
       source_path("configs/nanno.yaml: cannot be read: No such file or directory; did you mean ") + source_path("configs/nano.yaml?")},
  };
  for (const Case& c : cases) {
    const RunResult r = run_binary(c.words);
    EXPECT_EQ(r.exit_code, 2) << c.message;
    EXPECT_EQ(r.out, "") << c.message;
    EXPECT_EQ(r.err, c.message + "\n");
  }
}

TEST(CliMessages, FilesOfDataCommands) {
  const TempDir dir;
  ASSERT_EQ(run_binary({"data", "sample", "--out", dir.path("s"), "--documents", "3"}).exit_code, 0);
  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "data");
    const RunResult r = run_binary(words, dir.path("s"));
    EXPECT_EQ(r.exit_code, 2) << r.err;
    return r.err;
  };
  EXPECT_EQ(error({"sample", "--out", "."}), "--out .: there is a stories.jsonl already; give another folder\n");
  const std::vector<std::string> tokenize = {"tokenize", "--tokenizer", "tokenizer.json"};
  const auto tokenized = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tokenize.begin(), tokenize.end());
    return error(more);
  };
  EXPECT_EQ(tokenized({"--jsonl", "txt", "stories.jsonl"}), "stories.jsonl:1: no text in the field 'txt'; the fields are text\n");
  EXPECT_EQ(tokenized({"story.jsonl"}), "story.jsonl: cannot be read: No such file or directory; did you mean stories.jsonl?\n");
  EXPECT_EQ(tokenized({"."}), ".: is a folder; its files are stories.jsonl, tokenizer.json\n");
}

TEST(CliMessages, HelpFitsAScreenAndHasAnExample) {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"train"},
                                                          {"plan"},
                                                          {"config"},
                                                          {"bench", "step"},
                                                          {"bench", "ops"},
                                                          {"bench", "data"},
                                                          {"bench", "save"},
                                                          {"bench", "machine"},
                                                          {"data", "inspect"},
                                                          {"data", "sample"},
                                                          {"data", "tokenize"},
                                                          {"ckpt", "ls"},
                                                          {"ckpt", "inspect"},
                                                          {"ckpt", "verify"},
                                                          {"ckpt", "diff"},
                                                          {"ckpt", "average"},
                                                          {"ckpt", "prune"}};
  for (std::vector<std::string> words : commands) {
    words.push_back("--help");
    const RunResult r = run_binary(words);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_LE(std::count(r.out.begin(), r.out.end(), '\n'), 24) << r.out;
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
    const size_t options = r.out.find("--help"), example = r.out.find("Example: hlat ");
    EXPECT_NE(example, std::string::npos) << r.out;
    EXPECT_LT(options, example) << "options first";
    EXPECT_EQ(r.out.find("optim.beta2"), std::string::npos) << "keys only on request";
  }
}

TEST(CliMessages, WarningsAreTheSameInEveryCommand) {
  const TempDir dir;
  const std::string config = dir.write("c.yaml",
                                       "train: {steps: 2, seq_len: 16, global_batch: 2}\n"
                                       "model: {layers: 1, hidden: 16, heads: 2, ffn: 32}\n"
                                       "optim: {warmup: 4, schedule_steps: 9}\n"
                                       "run: {sample_lines: 0}\n");
  const std::string text = "optim.warmup (4) is longer than the run (2 steps)";
  const RunResult shown = run_binary({"config", "--config", config});
  EXPECT_NE(shown.err.find("hlat: warning: " + text), std::string::npos) << shown.err;
  EXPECT_EQ(shown.out.find(text), std::string::npos) << "what is printed is read back";
  const RunResult plan = run_binary({"plan", "--config", config});
  EXPECT_NE(plan.out.find("warning: " + text), std::string::npos) << plan.out;
  const auto printed = nlohmann::json::parse(run_binary({"plan", "--config", config, "--json"}).out);
  ASSERT_EQ(printed["warnings"].size(), 1u);
  const RunResult inspect = run_binary({"data", "inspect", "--config", config});
  EXPECT_NE(inspect.out.find("warning: " + text), std::string::npos) << inspect.out;
  const RunResult train = run_binary({"train", "--config", config, "run.dir=" + dir.path("run")});
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_NE(train.err.find(text), std::string::npos) << train.err;
  EXPECT_NE(slurp(dir.path("run/log.txt")).find(text), std::string::npos);
}

TEST(CliMessages, InspectWalksTheStepsOfTheRun) {
  const std::vector<std::string> inspect = {"data",
                                            "inspect",
                                            "--config",
                                            nano_config(),
                                            "--rows",
                                            "0",
                                            "train.seq_len=16",
                                            "train.global_batch=4",
                                            "train.micro_batch=4",
                                            "optim.warmup=1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), inspect.begin(), inspect.end());
    return run_binary(more).out;
  };
  EXPECT_NE(with({"train.steps=7"}).find("statistics of all 7 steps of the run\n"), std::string::npos) << with({"train.steps=7"});
  EXPECT_NE(with({"train.steps=7", "--tokens", "128"}).find("statistics of the first 2 of the run's 7 steps\n"), std::string::npos);
  EXPECT_NE(with({"train.steps=7", "--tokens", "640"}).find("statistics of the first 10 steps; the run has 7\n"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(with({"train.steps=7", "--json"}))["run_steps"], 7);
}

TEST(CliMessages, ARunFolderStartsItsRunAgain) {
  const TempDir dir;
  const std::vector<std::string> given = {"train",
                                          "--config",
                                          nano_config(),
                                          "run.dir=" + dir.path("a"),
                                          "train.tokens=320",
                                          "train.seq_len=32",
                                          "train.global_batch=4",
                                          "train.micro_batch=2",
                                          "optim.warmup=1",
                                          "run.sample_lines=0",
                                          "device.threads=1"};
  ASSERT_EQ(run_binary(given).exit_code, 0);
  ASSERT_EQ(run_binary({"train", "--config", dir.path("a/config.yaml"), "run.dir=" + dir.path("b")}).exit_code, 0);
  const auto losses = [&](const std::string& run) {
    std::istringstream lines(slurp(dir.path(run + "/metrics.jsonl")));
    std::vector<double> values;
    for (std::string line; std::getline(lines, line);) values.push_back(nlohmann::json::parse(line)["loss"]);
    return values;
  };
  EXPECT_EQ(losses("a").size(), 3u) << "320 tokens in steps of 128";
  EXPECT_EQ(losses("a"), losses("b"));
  EXPECT_NE(slurp(dir.path("a/log.txt")).find("3 steps of 128 tokens, from train.tokens = 320"), std::string::npos);
}

}  // namespace
}  // namespace hlat::test
