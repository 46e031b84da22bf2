// The length of a run: steps, tokens or epochs, which of them counts, what follows from it, and how it is written down.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/load.h"
#include "config/print.h"
#include "config/resolve.h"
#include "config/run_length.h"
#include "support/config_text.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::config_of;
using test::TempDir;

std::string problem(const std::string& yaml, const std::vector<std::string>& words = {}) {
  const TempDir dir;
  const std::string path = dir.write("c.yaml", yaml);
  std::string text = message_of([&] { load_config(path, words); });
  for (size_t at; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "FILE");
  return text;
}

const std::string kBatch = "train: {seq_len: 64, global_batch: 16, ";  // 1024 tokens in a step

TEST(RunLength, TokensAreRoundedUpToWholeSteps) {
  EXPECT_EQ(config_of(kBatch + "tokens: 10240}\n").train.steps, 10);
  EXPECT_EQ(config_of(kBatch + "tokens: 10241}\n").train.steps, 11);
  EXPECT_EQ(config_of(kBatch + "tokens: 1}\n").train.steps, 1);
  EXPECT_EQ(config_of(kBatch + "tokens: 10240}\n", {"train.seq_len=128"}).train.steps, 5) << "the last word about a step counts";
  EXPECT_EQ(length_text(config_of(kBatch + "tokens: 10241}\n").train), "11 steps of 1024 tokens, from train.tokens = 10241");
}

TEST(RunLength, TheCommandLineTakesThePlaceOfTheFile) {
  const Config steps = config_of(kBatch + "tokens: 10240}\n", {"train.steps=7"});
  EXPECT_EQ(steps.train.steps, 7);
  EXPECT_EQ(steps.train.tokens, 0);
  const Config tokens = config_of(kBatch + "steps: 50}\n", {"train.tokens=2048"});
  EXPECT_EQ(tokens.train.steps, 2);
  const Config epochs = config_of(kBatch + "steps: 50}\n", {"train.epochs=1.5"});
  EXPECT_EQ(epochs.train.epochs, 1.5);
  EXPECT_FALSE(steps_known(epochs.train));
  EXPECT_EQ(config_of(kBatch + "tokens: 2048}\n", {"train.tokens=0"}).train.steps, TrainConfig{}.steps) << "taken back";
}

TEST(RunLength, TwoLengthsInOnePlaceAreAnErrorThatNamesBoth) {
  EXPECT_EQ(problem("train:\n  steps: 5\n  tokens: 4096\n"),
            "FILE:3: train.tokens = 4096: the length of the run is also given as train.steps = 5 (FILE:2); give one of train.steps, "
            "train.tokens, train.epochs");
  EXPECT_EQ(problem("", {"train.epochs=2", "train.steps=4"}),
            "command line: train.steps = 4: the length of the run is also given as train.epochs = 2 (command line); give one of "
            "train.steps, train.tokens, train.epochs");
  EXPECT_EQ(problem("train: {steps: 5, tokens: 0, epochs: 0}\n"), "no exception") << "0 is not given";
}

TEST(RunLength, RulesSeeTheStepsThatCameOut) {
  EXPECT_EQ(problem(kBatch + "tokens: 10240}\noptim: {warmup: 11}\n"),
            "FILE:2: optim.warmup = 11: must not exceed the schedule's end, train.steps (10, from train.tokens); give "
            "optim.schedule_steps to stop early in a longer schedule");
  EXPECT_EQ(problem("train:\n  seq_len: 1\n  global_batch: 1\n  tokens: 4294967296\n"),
            "FILE:4: train.steps = 4294967296: must be an integer from 1 to 2147483647");
  // A length that cannot be read causes no second message.
  EXPECT_EQ(problem("train: {tokens: many}\noptim: {warmup: 5000}\n"),
            "FILE:1: train.tokens = many: must be an integer from 0 to 4611686018427387904");
}

TEST(RunLength, EpochsWaitForTheDataAndAreThenChecked) {
  Config c = config_of(kBatch + "epochs: 2.5}\noptim: {warmup: 11}\n");
  EXPECT_EQ(with_ranks(c, 1).train.steps, 0) << "not known before the data is";
  Config fits = c;
  set_steps_from_epochs(fits, 4506);  // 2.5 x 4506 = 11265: one token more than 11 steps
  EXPECT_EQ(fits.train.steps, 12);
  EXPECT_EQ(length_text(fits.train), "12 steps of 1024 tokens, from train.epochs = 2.5");
  EXPECT_EQ(message_of([&] { set_steps_from_epochs(c, 4000); }),
            "optim.warmup = 11: must not exceed the schedule's end, train.steps (10, from train.epochs); give optim.schedule_steps to stop "
            "early in a longer schedule");
  Config steps;
  set_steps_from_epochs(steps, 4000);
  EXPECT_EQ(steps, Config{}) << "only where epochs were given";
  Config huge = config_of("train: {seq_len: 1, global_batch: 1, epochs: 1e9}\n");
  EXPECT_NE(message_of([&] { set_steps_from_epochs(huge, uint64_t{1} << 40); }).find(" epochs of 1099511627776 tokens): must be"),
            std::string::npos);
}

TEST(RunLength, IsWrittenAsItWasGiven) {
  for (const char* length : {"tokens: 10241", "epochs: 2.5", "steps: 7"}) {
    const Config c = config_of(kBatch + length + "}\n");
    EXPECT_EQ(config_of(to_yaml(c)), c) << to_yaml(c);
  }
  EXPECT_NE(to_yaml(config_of(kBatch + "tokens: 10241}\n")).find("\n  # steps: 11, from train.tokens\n"), std::string::npos);
  EXPECT_EQ(to_json(config_of(kBatch + "tokens: 10241}\n"))["train"]["steps"], 11);
  EXPECT_TRUE(to_json(config_of(kBatch + "epochs: 2}\n"))["train"]["steps"].is_null());
}

TEST(RunRecord, KeepsAutoAndSaysWhatItWas) {
  Config given = config_of(kBatch + "epochs: 2}\nparallel: {tp: 2}\n");
  Config resolved = with_ranks(given, 8);
  set_steps_from_epochs(resolved, 10240);
  ASSERT_EQ(resolved.parallel.dp, 4);
  const std::string record = run_record(given, resolved);
  EXPECT_NE(record.find("\n  dp: auto  # 4 in this run\n"), std::string::npos) << record;
  EXPECT_NE(record.find("\n  # steps: 20, from train.epochs\n"), std::string::npos) << record;
  const Config again = config_of(record);
  EXPECT_EQ(again, given);
  EXPECT_EQ(with_ranks(again, 8), with_ranks(given, 8)) << "the same run on the same ranks";
  EXPECT_EQ(with_ranks(again, 4).parallel.dp, 2) << "and one on others";
  given.parallel.dp = 4;
  EXPECT_NE(run_record(given, resolved).find("\n  dp: 4\n"), std::string::npos) << "a number that was given stays";
}

}  // namespace
}  // namespace hlat
