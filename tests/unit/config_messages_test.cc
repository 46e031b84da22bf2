// Bad input: every kind of mistake with its whole message, and all mistakes at once.
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/load.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::TempDir;

// The problems found in a file with this text and these words; `FILE` stands for the file's path. Empty when it loads.
std::string problems(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const TempDir dir;
  const std::string path = dir.write("c.yaml", yaml);
  try {
    load_config(path, overrides);
    return "";
  } catch (const UsageError& e) {
    std::string text = e.what();
    for (size_t at; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "FILE");
    return text;
  }
}

TEST(ConfigMessages, OneLineEach) {
  struct Case {
    std::string yaml;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"model:\n  haeds: 4\n", "FILE:2: model.haeds = 4: unknown key; did you mean model.heads?"},
      {"train: {lr: 1}\n", "FILE:1: train.lr = 1: unknown key; did you mean optim.lr?"},
      {"data:\n\n  zzzzzz: 1\n", "FILE:3: data.zzzzzz = 1: unknown key; data has embedded, seed"},
      {"\nmodle: {heads: 4, layers: x}\n", "FILE:2: modle: unknown section; did you mean model?"},
      {"steps: 5\n", "FILE:1: steps: unknown section; did you mean the key steps in section train?"},
      {"train.steps: 5\n", "FILE:1: train.steps: unknown section; did you mean the key steps in section train?"},
      {"qqqqqqq: 5\n", "FILE:1: qqqqqqq: unknown section; there are run, model, train, optim, data, device"},
      {"model: 7\n", "FILE:1: model = 7: must be a section of `key: value` lines"},
      {"model: [1, 2]\n", "FILE:1: model = (a list): must be a section of `key: value` lines"},
      {"- model\n", "FILE:1: must hold sections such as `run:`"},
      {"just words\n", "FILE:1: must hold sections such as `run:`"},
      {"train:\n  steps: ten\n", "FILE:2: train.steps = ten: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: 1e3\n", "FILE:2: train.steps = 1e3: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: 10k\n", "FILE:2: train.steps = 10k: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: 99999999999999999999\n", "FILE:2: train.steps = 99999999999999999999: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: 0\n", "FILE:2: train.steps = 0: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: auto\n", "FILE:2: train.steps = auto: must be an integer from 1 to 2147483647"},
      {"train:\n  steps:\n", "FILE:2: train.steps = (nothing): must be an integer from 1 to 2147483647"},
      {"train:\n  steps: [1]\n", "FILE:2: train.steps = (a list): must be an integer from 1 to 2147483647"},
      {"run:\n  dir: {a: b}\n", "FILE:2: run.dir = (a map): must be a text that is not empty"},
      {"run: {dir: \"\"}\n", "FILE:1: run.dir = : must be a text that is not empty"},
      {"run: {seed: -1}\n", "FILE:1: run.seed = -1: must be an integer from 0 to 18446744073709551615"},
      {"run: {tensorboard: yes}\n", "FILE:1: run.tensorboard = yes: must be true or false"},
      {"optim: {lr: 0}\n", "FILE:1: optim.lr = 0: must be a number above 0 and at most 100"},
      {"optim: {lr: nan}\n", "FILE:1: optim.lr = nan: must be a number above 0 and at most 100"},
      {"optim: {clip: inf}\n", "FILE:1: optim.clip = inf: must be a number from 0 to 1e+30"},
      {"optim: {clip: 1e999}\n", "FILE:1: optim.clip = 1e999: must be a number from 0 to 1e+30"},
      {"optim: {beta2: 1}\n", "FILE:1: optim.beta2 = 1: must be a number from 0 to below 1"},
      {"optim: {min_ratio: 1.5}\n", "FILE:1: optim.min_ratio = 1.5: must be a number from 0 to 1"},
      {"model: {vocab: 1}\n", "FILE:1: model.vocab = 1: must be an integer from 2 to 16777216"},
      {"model: {init_std: 0}\n", "FILE:1: model.init_std = 0: must be a number above 0 and at most 100"},
      {"device: {threads: -1}\n", "FILE:1: device.threads = -1: must be auto or an integer from 1 to 4096"},
      {"device: {isa: avx_2}\n", "FILE:1: device.isa = avx_2: must be one of auto, amx, avx512, avx2, generic; did you mean avx2?"},
      {"train: {precision: mixd}\n",
       "FILE:1: train.precision = mixd: must be one of fp32, mixed, mixed_sr, bf16_sr, bf16; did you mean mixed?"},
      {"train: {recompute: every:0}\n",
       "FILE:1: train.recompute = every:0: must be one of none, selective, full, every:K (K from 1 to 65536)"},
      {"model: {preset: hlat-8b}\n",
       "FILE:1: model.preset = hlat-8b: must be one of hlat-7b, hlat-70b, llama-1b, llama-134m, nano; did you mean hlat-7b?"},
      {"train:\n  steps: 5\n  seq_len: 8\n  steps: 6\n", "FILE:4: train.steps: key given twice, first in line 2"},
      {"train: {seq_len: 8}\nrun: {seed: 1}\ntrain: {seq_len: 9}\n", "FILE:3: train: section given twice, first in line 1"},
      {"? [a, b]\n: 5\n", "FILE:1: (a list): is not the name of a section"},
      {"train: {seq_len: 8}\n---\ntrain: {seq_len: 8}\n", "FILE:2: starts a second YAML document, but a config is one"},
      {"\n, train: {seq_len: 8}\n", "FILE:2: starts a second YAML document, but a config is one"},
  };
  for (const Case& c : cases) EXPECT_EQ(problems(c.yaml), c.expected) << c.yaml;
}

TEST(ConfigMessages, SyntaxErrorHasItsLine) {
  const std::string text = problems("train:\n  seq_len: 8\n  steps: [1, 2\nmodel: {layers: 3}\n");
  EXPECT_EQ(text.find("FILE:4: is not valid YAML: "), 0u) << text;
}

TEST(ConfigMessages, UnreadableFiles) {
  const TempDir dir;
  const auto message = [](const std::string& path) -> std::string {
    try {
      load_config(path, {"train.steps=x"});
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  // The words of the command line are looked at even when the file is not there.
  const std::string steps = "\ncommand line: train.steps = x: must be an integer from 1 to 2147483647";
  EXPECT_EQ(message(dir.path("none.yaml")), dir.path("none.yaml") + ": cannot be read: No such file or directory" + steps);
  EXPECT_EQ(message(dir.path()), dir.path() + ": cannot be read: Is a directory" + steps);
  EXPECT_EQ(message("/dev/zero"), "/dev/zero: cannot be read: larger than 1 MiB, not a config" + steps);
}

TEST(ConfigMessages, CommandLine) {
  EXPECT_EQ(problems("", {"steps=5"}), "command line: steps = 5: unknown key; did you mean train.steps?");
  EXPECT_EQ(problems("", {"modle.heads=4"}), "command line: modle.heads = 4: unknown key; did you mean model.heads?");
  EXPECT_EQ(problems("", {"train.steps"}), "command line: train.steps: must have the form section.key=value");
  EXPECT_EQ(problems("", {"train.steps="}), "command line: train.steps = : must be an integer from 1 to 2147483647");
  EXPECT_EQ(problems("", {"train.steps= 5"}), "command line: train.steps =  5: must be an integer from 1 to 2147483647");
  EXPECT_EQ(problems("", {"optim.lr=-1e-3"}), "command line: optim.lr = -1e-3: must be a number above 0 and at most 100");
}

TEST(ConfigMessages, RulesBetweenFieldsPointAtTheKey) {
  EXPECT_EQ(problems("model:\n  hidden: 768\n  heads: 13\n"), "FILE:3: model.heads = 13: must divide model.hidden (768)");
  EXPECT_EQ(problems("model:\n  hidden: 12\n  heads: 4\n"),
            "FILE:3: model.heads = 4: must leave an even head size for RoPE, not model.hidden / model.heads = 3");
  EXPECT_EQ(problems("model:\n  heads: 4\n  kv_heads: 3\n"), "FILE:3: model.kv_heads = 3: must divide model.heads (4)");
  EXPECT_EQ(problems("train: {global_batch: 10}\n", {"train.micro_batch=4"}),
            "command line: train.micro_batch = 4: must divide train.global_batch (10)");
  EXPECT_EQ(problems("train: {global_batch: 4,\n  micro_batch: 8}\n"), "FILE:2: train.micro_batch = 8: must divide train.global_batch (4)");
  EXPECT_EQ(
      problems("optim: {warmup: 101}\n"),
      "FILE:1: optim.warmup = 101: must not exceed the schedule's end, train.steps (100); give optim.schedule_steps to stop early in a "
      "longer schedule");
  EXPECT_EQ(problems("optim: {warmup: 51, schedule_steps: 50}\n"),
            "FILE:1: optim.warmup = 51: must not exceed the schedule's end, optim.schedule_steps (50)");
  EXPECT_EQ(problems("optim: {schedule: warmup_stable_decay, warmup: 50, decay_share: 0.6}\n"),
            "FILE:1: optim.decay_share = 0.6: must leave room for optim.warmup (50) in train.steps (100)");
  EXPECT_EQ(problems("train: {micro_batch: 1048576, global_batch: 1048576, seq_len: 2048}\n"),
            "FILE:1: train.micro_batch = 1048576: times train.seq_len (2048) must stay below 2^31 tokens");
}

TEST(ConfigMessages, ValuesNobodyWroteAreNamedAsSuch) {
  EXPECT_EQ(problems("model:\n\n  hidden: 130\n"), "FILE:3: model.heads = 4 (default): must divide model.hidden (130)");
  EXPECT_EQ(problems("model: {preset: llama-1b}\n", {"model.heads=30"}),
            "command line: model.heads = 30: must divide model.hidden (2048)\n"
            "command line: model.kv_heads = 4 (preset llama-1b): must divide model.heads (30)");
}

TEST(ConfigMessages, CountsThatWouldOverflow) {
  const std::string weights = problems("model: {layers: 65536, hidden: 1048576, ffn: 4194304}\n");
  EXPECT_NE(weights.find("FILE:1: model.layers = 65536: with model.hidden"), std::string::npos) << weights;
  const std::string activations = problems("model: {layers: 65536, hidden: 65536}\ntrain: {seq_len: 16777216}\n");
  EXPECT_NE(activations.find("FILE:2: train.micro_batch = 1 (default): with train.seq_len"), std::string::npos) << activations;
  const std::string tokens = problems("train: {steps: 2147483647, global_batch: 16777216, seq_len: 16777216}\n");
  EXPECT_NE(tokens.find("FILE:1: train.steps = 2147483647: times train.global_batch"), std::string::npos) << tokens;
}

TEST(ConfigMessages, AllAtOnceInTheOrderOfTheFile) {
  const std::string yaml =
      "train:\n"
      "  stepz: 5\n"
      "  seq_len: long\n"
      "  micro_batch: 3\n"
      "model:\n"
      "  heads: 13\n"
      "  layers: 0\n"
      "extra: 1\n";
  EXPECT_EQ(problems(yaml, {"optim.lr=fast", "run.sed=1"}),
            "FILE:2: train.stepz = 5: unknown key; did you mean train.steps?\n"
            "FILE:3: train.seq_len = long: must be an integer from 1 to 16777216\n"
            "FILE:4: train.micro_batch = 3: must divide train.global_batch (8)\n"
            "FILE:6: model.heads = 13: must divide model.hidden (128)\n"
            "FILE:7: model.layers = 0: must be an integer from 1 to 65536\n"
            "FILE:8: extra: unknown section; there are run, model, train, optim, data, device\n"
            "command line: optim.lr = fast: must be a number above 0 and at most 100\n"
            "command line: run.sed = 1: unknown key; did you mean run.seed?");
}

TEST(ConfigMessages, ARefusedValueCausesNoSecondMessage) {
  EXPECT_EQ(problems("model: {hidden: x, heads: 13}\n"), "FILE:1: model.hidden = x: must be an integer from 2 to 1048576");
  // With an unknown preset nothing is known about the shape that 13 heads should fit.
  const std::string preset = problems("model: {preset: nono, heads: 13}\n");
  EXPECT_EQ(preset.find('\n'), std::string::npos) << preset;
  EXPECT_NE(preset.find("did you mean nano?"), std::string::npos) << preset;
  // A file that could not be read may have held the width that 13 heads divide.
  const std::string broken = problems("model: {\n", {"model.heads=13"});
  EXPECT_EQ(broken.find("model.heads"), std::string::npos) << broken;
}

}  // namespace
}  // namespace hlat
