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
      {"device:\n\n  zzzzzz: 1\n", "FILE:3: device.zzzzzz = 1: unknown key; device has backend, threads, isa, graphs, deterministic"},
      {"\nmodle: {heads: 4, layers: x}\n", "FILE:2: modle: unknown section; did you mean model?"},
      {"steps: 5\n", "FILE:1: steps: unknown section; did you mean the key steps in section train?"},
      {"train.steps: 5\n", "FILE:1: train.steps: unknown section; did you mean the key steps in section train?"},
      {"qqqqqqq: 5\n",
       "FILE:1: qqqqqqq: unknown section; there are run, model, train, precision, parallel, optim, data, checkpoint, eval, loss, monitor, "
       "launch, fault, "
       "device"},
      {"model: 7\n", "FILE:1: model = 7: must be a section of `key: value` lines"},
      {"model: [1, 2]\n", "FILE:1: model = (a list): must be a section of `key: value` lines"},
      {"- model\n", "FILE:1: must hold sections such as `run:`"},
      {"just words\n", "FILE:1: must hold sections such as `run:`"},
      {"train:\n  steps: ten\n", "FILE:2: train.steps = ten: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: 1e3\n", "FILE:2: train.steps = 1e3: must be an integer from 1 to 2147483647; did you mean 1000?"},
      {"train:\n  steps: 10k\n", "FILE:2: train.steps = 10k: must be an integer from 1 to 2147483647; did you mean 10000?"},
      {"train:\n  steps: 99999999999999999999\n", "FILE:2: train.steps = 99999999999999999999: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: 0\n", "FILE:2: train.steps = 0: must be an integer from 1 to 2147483647"},
      {"train:\n  steps: auto\n", "FILE:2: train.steps = auto: must be an integer from 1 to 2147483647"},
      {"train:\n  steps:\n", "FILE:2: train.steps = (nothing): must be an integer from 1 to 2147483647"},
      {"train:\n  steps: [1]\n", "FILE:2: train.steps = [1]: must be an integer from 1 to 2147483647"},
      {"run:\n  dir: {a: b}\n", "FILE:2: run.dir = (a map): must be a text that is not empty"},
      {"run: {dir: \"\"}\n", "FILE:1: run.dir = : must be a text that is not empty"},
      {"run: {seed: -1}\n", "FILE:1: run.seed = -1: must be an integer from 0 to 18446744073709551615"},
      {"loss: {on_alarm: skip}\n",
       "FILE:1: loss.on_alarm = skip: must be one of continue, rollback, stop; the update of an alarm's step is done; rollback undoes it "
       "and leaves the batches out"},
      {"run: {tensorboard: yes}\n", "FILE:1: run.tensorboard = yes: must be true or false; did you mean true?"},
      {"optim: {lr: 0}\n", "FILE:1: optim.lr = 0: must be a number above 0 and at most 100"},
      {"optim: {lr: nan}\n", "FILE:1: optim.lr = nan: must be a number above 0 and at most 100"},
      {"optim: {clip: inf}\n", "FILE:1: optim.clip = inf: must be a number from 0 to 1e+30"},
      {"optim: {clip: 1e999}\n", "FILE:1: optim.clip = 1e999: must be a number from 0 to 1e+30"},
      {"optim: {beta2: 1}\n", "FILE:1: optim.beta2 = 1: must be a number from 0 to below 1"},
      {"optim: {min_ratio: 1.5}\n", "FILE:1: optim.min_ratio = 1.5: must be a number from 0 to 1"},
      {"model: {vocab: 1}\n", "FILE:1: model.vocab = 1: must be auto or an integer from 2 to 16777216"},
      {"model: {init_std: 0}\n", "FILE:1: model.init_std = 0: must be a number above 0 and at most 100"},
      {"device: {threads: -1}\n", "FILE:1: device.threads = -1: must be auto or an integer from 1 to 4096"},
      {"device: {isa: avx_2}\n", "FILE:1: device.isa = avx_2: must be one of auto, amx, avx512, avx2, generic; did you mean avx2?"},
      {"train: {precision: mixd}\n",
       "FILE:1: train.precision = mixd: must be one of fp32, mixed, mixed_sr, bf16_sr, bf16, fp8, fp8_sr; did you mean mixed?"},
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
  EXPECT_EQ(problems("", {"train.steps= 5"}), "command line: train.steps =  5: must be an integer from 1 to 2147483647; did you mean 5?");
  EXPECT_EQ(problems("", {"optim.lr=-1e-3"}), "command line: optim.lr = -1e-3: must be a number above 0 and at most 100");
}

TEST(ConfigMessages, RulesBetweenFieldsPointAtTheKey) {
  EXPECT_EQ(problems("model:\n  hidden: 768\n  heads: 13\n"), "FILE:3: model.heads = 13: must divide model.hidden (768)");
  EXPECT_EQ(problems("model:\n  hidden: 12\n  heads: 4\n"),
            "FILE:3: model.heads = 4: must leave an even head size for RoPE, not model.hidden / model.heads = 3");
  EXPECT_EQ(problems("model:\n  heads: 4\n  kv_heads: 3\n"), "FILE:3: model.kv_heads = 3: must divide model.heads (4)");
  EXPECT_EQ(problems("model:\n  rope_factor: 8\n"),
            "FILE:2: model.rope_factor = 8: stretches nothing while model.rope_scaling is none; give model.rope_scaling=linear or llama3");
  EXPECT_EQ(problems("model:\n  rope_scaling: llama3\n  rope_factor: 8\n  rope_low_freq_factor: 4\n"),
            "FILE:4: model.rope_high_freq_factor = 4 (default): must exceed model.rope_low_freq_factor (4)");
  EXPECT_EQ(problems("model:\n  rope_scaling: linear\n  rope_factor: 8\n  rope_low_freq_factor: 4\n"), "");
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

TEST(ConfigMessages, ListsOfIntegers) {
  const auto expected = [](const std::string& place, const std::string& text, const std::string& hint = "") {
    return place + ": parallel.cuts = " + text + ": must be a list of integers from 1 to 65535, such as [8, 16] or []" + hint;
  };
  struct Case {
    std::string written;  // in the file
    std::string text;     // in the message
  };
  const std::vector<Case> cases = {
      {"[8, x]", "[8, x]"},
      {"[8, 1.5]", "[8, 1.5]"},
      {"[0, 8]", "[0, 8]"},
      {"[8, -16]", "[8, -16]"},
      {"[8, 65536]", "[8, 65536]"},
      {"[99999999999999999999]", "[99999999999999999999]"},
      {"[[8], 16]", "[(a list), 16]"},
      {"[8, {a: 1}]", "[8, (a map)]"},
      {"[8, ~]", "[8, (nothing)]"},
      {"[\"8,16\"]", "[\"8,16\"]"},
      {"[\"\"]", "[\"\"]"},
      {"even", "even"},
      {"{a: 8}", "(a map)"},
      {"", "(nothing)"},
  };
  for (const Case& c : cases) EXPECT_EQ(problems("parallel:\n  cuts: " + c.written + "\n"), expected("FILE:2", c.text)) << c.written;
  for (const std::string text : {"", ",", "8,", ",8", "[8", "8]", "[", "]", "[8,]", "[[8]]", "8-16", "auto"}) {
    EXPECT_EQ(problems("", {"parallel.cuts=" + text}), expected("command line", text)) << text;
  }
  for (const std::string text : {"8 16", "8;16", "8, ,16", "8,,16", "8:16", "[8 16]", "[8; 16]"}) {
    EXPECT_EQ(problems("", {"parallel.cuts=" + text}), expected("command line", text, "; did you mean [8, 16]?")) << text;
  }
  EXPECT_EQ(problems("run:\n  dir: [a, b]\n"), "FILE:2: run.dir = [a, b]: must be a text that is not empty");
}

TEST(ConfigMessages, ListsOfItems) {
  const std::string good = "data:\n  tokenizer: t.json\n  sources:\n    - {name: web, path: w.txt}\n    - {name: books, path: b.txt}\n";
  const auto stages = [&](const std::string& text) { return problems(good + "  stages: [" + text + "]\n"); };
  EXPECT_EQ(problems(good), "");
  EXPECT_EQ(problems("data:\n  sources:\n    - paht: a\n"),
            "FILE:2: data.sources[0].path = : must be a text that is not empty\n"
            "FILE:2: data.tokenizer =  (default): data.sources needs a tokenizer: give its file\n"
            "FILE:3: data.sources[0].paht = a: unknown key; did you mean data.sources[0].path?");
  EXPECT_EQ(problems("data: {tokenizer: t, sources: [{path: a, weight: -1}, {path: b, weight: x}]}\n"),
            "FILE:1: data.sources[0].weight = -1: must be a number from 0 to 1000000000000\n"
            "FILE:1: data.sources[1].weight = x: must be a number from 0 to 1000000000000");
  const auto separator = [](const std::string& text) {
    return problems("data: {tokenizer: t, sources: [{path: a, separator: \"" + text + "\"}]}\n");
  };
  for (const char* good_one : {"", "line", "blank_line", "---", "<|endoftext|>", "\\n", "END", "document"})
    EXPECT_EQ(separator(good_one), "");
  for (const auto& [word, meant] : {std::pair{"lines", "line"}, {"newline", "line"}, {"blank", "blank_line"}, {"blankline", "blank_line"}})
    EXPECT_EQ(separator(word),
              fmt::format("FILE:1: data.sources[0].separator = {}: is neither line nor blank_line; did you mean {}?", word, meant));
  EXPECT_EQ(problems("data:\n  sources: a.txt\n"),
            "FILE:2: data.sources = a.txt: must be a list of items with the keys name, path, weight, field, separator, "
            "validation, or []; the path of its first item is given as data.sources[0].path=a.txt");
  EXPECT_EQ(problems("data:\n  tokenizer: t\n  sources:\n    - a.txt\n    - {path: b}\n"),
            "FILE:3: data.sources[0].path = : must be a text that is not empty\n"
            "FILE:4: data.sources[0] = a.txt: must be a map of `key: value` pairs");
  EXPECT_EQ(problems("data:\n  tokenizer: t\n  sources: [{path: a,\n    path: b}]\n"),
            "FILE:4: data.sources[0].path: key given twice, first in line 3");
  EXPECT_EQ(problems(good, {"data.sources[3].path=x"}),
            "command line: data.sources[3].path = x: there is no data.sources[3]; items are counted from 0 and added one by one");
  EXPECT_EQ(problems(good, {"data.source=x"}), "command line: data.source = x: unknown key; did you mean data.sources?");
  EXPECT_EQ(problems(good, {"data.sources[1].name=web"}),
            "command line: data.sources[1].name = web: data.sources[0] is called web too; give each its own name");
  EXPECT_EQ(problems(good, {"data.sources[0].weight=0", "data.sources[1].weight=0"}),
            "command line: data.sources[0].weight = 0: all sources have weight 0, so there is nothing to read");
  EXPECT_EQ(stages("{from_step: 5, weights: {wbe: 1}}"),
            "FILE:6: data.stages[0].weights = {wbe: 1}: no source is called wbe; did you mean web?");
  EXPECT_EQ(stages("{from_step: 5, weights: {web: 0}}"),
            "FILE:6: data.stages[0].weights = {web: 0}: must give at least one source a weight above 0");
  EXPECT_EQ(stages("{from_step: 5, from_tokens: 5, weights: {web: 1}}"),
            "FILE:6: data.stages[0].from_step = 5: a stage begins by from_step or by from_tokens, not by both");
  EXPECT_EQ(
      stages("{from_step: 5, weights: {web: 1}}, {from_tokens: 1024, weights: {books: 1}}"),
      "FILE:6: data.stages[1].from_tokens = 1024: the stage begins with step 2, but data.stages[0] before it with step 5; stages must "
      "be in order");
  EXPECT_EQ(stages("{from_step: 5, weights: {web: a}}"),
            "FILE:6: data.stages[0].weights = {web: a}: must be a map of names to numbers of at least 0, such as {web: 0.7, books: 0.3}");
  EXPECT_EQ(stages("{from_step: 5, weights: [1, 2]}"),
            "FILE:6: data.stages[0].weights = [1, 2]: must be a map of names to numbers of at least 0, such as {web: 0.7, books: 0.3}");
}

TEST(ConfigMessages, Validation) {
  EXPECT_EQ(problems("data: {validate_every: 5}\n"),
            "FILE:1: data.validate_every = 5: needs data.validation above 0: no document is held out");
  EXPECT_EQ(problems("data: {validate_rows: 5}\ntrain: {micro_batch: 2}\n"),
            "FILE:1: data.validate_rows = 5: must be a multiple of 2: train.micro_batch (2)");
  EXPECT_EQ(problems("data: {validation: 0.6}\n"), "FILE:1: data.validation = 0.6: must be a number from 0 to 0.5");
}

TEST(ConfigMessages, RanksThatShareTheModel) {
  EXPECT_EQ(problems("parallel: {tp: 5}\n"), "FILE:1: parallel.tp = 5: must not exceed model.heads (4): every rank needs a head");
  EXPECT_EQ(problems("model: {heads: 8, ffn: 4}\nparallel: {tp: 8}\n"),
            "FILE:2: parallel.tp = 8: must not exceed model.ffn (4): every rank needs a column");
  EXPECT_EQ(problems("model: {heads: 8, vocab: 4}\nparallel: {tp: 8}\n"),
            "FILE:2: parallel.tp = 8: must not exceed model.vocab (4): every rank needs a token of the vocabulary");
  EXPECT_EQ(problems("parallel: {tp: 4, sequence: true}\ntrain: {seq_len: 3}\n"),
            "FILE:1: parallel.sequence = true: needs a token for each of parallel.tp (4) ranks, but train.micro_batch (1) x train.seq_len "
            "(3) is 3");
  EXPECT_EQ(problems("parallel: {tp: 1, sequence: true}\ntrain: {seq_len: 1}\n"), "");
  EXPECT_EQ(problems("model: {layers: 65536, heads: 64}\nparallel: {tp: 64, pp: 65536, dp: 512}\ntrain: {global_batch: 512}\n"),
            "FILE:2: parallel.tp = 64: x parallel.pp (65536) x parallel.dp (512) must stay below 2^31 ranks");
}

TEST(ConfigMessages, ReplicasThatShareTheBatch) {
  const auto replicas = [](int dp, const std::string& train) {
    return problems("train: {" + train + "}\n", {"parallel.dp=" + std::to_string(dp)});
  };
  EXPECT_EQ(replicas(3, "global_batch: 16, micro_batch: 2"),
            "command line: parallel.dp = 3: x train.micro_batch (2) is 6 sequences and must divide train.global_batch (16); parallel.dp 2 "
            "or 4, or train.global_batch 12 or 18, would fit");
  EXPECT_EQ(replicas(32, "global_batch: 8"),
            "command line: parallel.dp = 32: x train.micro_batch (1) is 32 sequences and must divide train.global_batch (8); parallel.dp "
            "8, or train.global_batch 32, would fit");
  EXPECT_EQ(replicas(4, "global_batch: 16, micro_batch: 4"), "");
  // The micro-batch alone does not fit: one message.
  EXPECT_EQ(replicas(3, "global_batch: 16, micro_batch: 3"), "FILE:1: train.micro_batch = 3: must divide train.global_batch (16)");
}

TEST(ConfigMessages, PipelineStages) {
  EXPECT_EQ(problems("parallel: {pp: 5}\n"), "FILE:1: parallel.pp = 5: must not exceed model.layers (4)");
  EXPECT_EQ(problems("parallel: {chunks: 8}\n"),
            "FILE:1: parallel.chunks = 8: needs parallel.pp above 1: only pipeline stages hold several pieces");
  EXPECT_EQ(problems("parallel: {pp: 2, chunks: 3}\n"),
            "FILE:1: parallel.pp = 2: x parallel.chunks (3) is 6 pieces, more than model.layers (4)");
  EXPECT_EQ(problems("parallel: {pp: 2, chunks: 2, cuts: [2]}\n"),
            "FILE:1: parallel.cuts = [2]: must hold 3 integers, one less than the pieces, parallel.pp (2) x parallel.chunks (2); or [] for "
            "even pieces");
  EXPECT_EQ(problems("parallel: {cuts: [2]}\n"), "FILE:1: parallel.cuts = [2]: must be [] while parallel.pp is 1: there is nothing to cut");
  EXPECT_EQ(problems("parallel: {pp: 3, cuts: [2, 2]}\n"), "FILE:1: parallel.cuts = [2, 2]: must increase, but 2 follows 2");
  EXPECT_EQ(problems("parallel:\n  pp: 3\n  cuts: [2, 4]\n"),
            "FILE:3: parallel.cuts = [2, 4]: must stay below model.layers (4), but holds 4");
}

TEST(ConfigMessages, ParallelKeysOnTheCommandLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"parallel.tp=0", "parallel.tp = 0: must be an integer from 1 to 65536"},
      {"parallel.tp=two", "parallel.tp = two: must be an integer from 1 to 65536"},
      {"parallel.dp=all", "parallel.dp = all: must be auto or an integer from 1 to 16777216"},
      {"parallel.sequence=yes", "parallel.sequence = yes: must be true or false; did you mean true?"},
      {"parallel.bucket_mb=32MB", "parallel.bucket_mb = 32MB: must be an integer from 1 to 65536"},
      {"parallel.timeout_s=10m", "parallel.timeout_s = 10m: must be an integer from 1 to 1000000"},
      {"tp=2", "tp = 2: unknown key; did you mean parallel.tp?"},
      {"train.dp=2", "train.dp = 2: unknown key; did you mean parallel.dp?"},
      {"paralel.tp=2", "paralel.tp = 2: unknown key; did you mean parallel.tp?"},
      {"parallel.micro_batches=2", "parallel.micro_batches = 2: unknown key; did you mean train.micro_batch?"},
      {"parallel.tensor=2",
       "parallel.tensor = 2: unknown key; parallel has tp, pp, dp, sequence, zero1, chunks, cuts, bucket_mb, health_every, timeout_s, "
       "start_timeout_s, comm"},
      {"parallel=2", "parallel = 2: is a section; give its keys as parallel.key=value"},
  };
  for (const auto& [word, expected] : cases) EXPECT_EQ(problems("", {word}), "command line: " + expected) << word;
}

TEST(ConfigMessages, EveryParallelProblemAtOnce) {
  EXPECT_EQ(problems("parallel:\n  tp: 8\n  pp: 2\n  dp: 3\n  chunks: 2\n  cuts: [9, 1]\n  zero: true\n  timeout_s: 0\n"),
            "FILE:2: parallel.tp = 8: must not exceed model.heads (4): every rank needs a head\n"
            "FILE:4: parallel.dp = 3: x "
            "train.micro_batch (1) is 3 sequences and must divide train.global_batch (8); parallel.dp 2 or 4, or train.global_batch 6 or "
            "9, would fit\n"
            "FILE:6: parallel.cuts = [9, 1]: must hold 3 integers, one less than the pieces, parallel.pp (2) x "
            "parallel.chunks (2); or [] for even pieces\n"
            "FILE:6: parallel.cuts = [9, 1]: must increase, but 1 follows 9\n"
            "FILE:6: "
            "parallel.cuts = [9, 1]: must stay below model.layers (4), but holds 9\n"
            "FILE:7: parallel.zero = true: unknown key; did you "
            "mean parallel.zero1?\n"
            "FILE:8: parallel.timeout_s = 0: must be an integer from 1 to 1000000");
}

TEST(ConfigMessages, ValuesNobodyWroteAreNamedAsSuch) {
  EXPECT_EQ(problems("model:\n\n  hidden: 130\n"), "FILE:3: model.heads = 4 (default): must divide model.hidden (130)");
  EXPECT_EQ(problems("model: {preset: llama-1b}\n", {"model.heads=30"}),
            "command line: model.heads = 30: must divide model.hidden (2048)\n"
            "command line: model.kv_heads = 4 (preset llama-1b): must divide model.heads (30)");
}

// A choice of `precision` that nobody made has the value of its policy.
TEST(ConfigMessages, ChoicesOfAPolicyHaveItsValue) {
  EXPECT_EQ(
      problems("", {"train.precision=fp32", "precision.products=fp8"}),
      "command line: precision.activations = f32 (of train.precision fp32): must be bf16 with FP8 products, whose operands are made of "
      "bf16 values");
  EXPECT_EQ(
      problems("train:\n  precision: bf16_sr\n", {"precision.activations=f32", "precision.tp_sums=f32", "precision.grads=f32"}),
      "command line: precision.weights = bf16 (of train.precision bf16_sr): must be the type of activations, f32: a product takes both in "
      "one type");
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
            "FILE:8: extra: unknown section; there are run, model, train, precision, parallel, optim, data, checkpoint, eval, loss, "
            "monitor, launch, fault, device\n"
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
