// Tasks evaluated while a model trains: the run is bit by bit that of a run without them, its memory the plan's, and their curve is
// recorded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/tiny_runs.h"

namespace hlat::test {
namespace {

using nlohmann::json;

class LoopEval : public TinyRuns {
 protected:
  LoopEval() : TinyRuns(6, 2, 3) {
    for (const char* folder : {"data", "tasks"}) std::filesystem::create_directory(dir_.path(folder));
    // Continuations of stories of the embedded corpus's words: choices of one word and of several, and texts to go on with.
    dir_.write("data/pairs.jsonl",
               "{\"start\": \"the fox\", \"right\": \"yelped happy\", \"wrong\": \"happy forest\"}\n"
               "{\"start\": \"Lily Tom the\", \"right\": \"fox\", \"wrong\": \"red\"}\n"
               "{\"start\": \"the owl\", \"right\": \"hooted\", \"wrong\": \"owl\"}\n");
    dir_.write("tasks/pairs.yaml",
               "task: pairs\ntitle: pairs\ngroup: own\nversion: 1\nkind: choice\ndata: {file: pairs.jsonl}\n"
               "prompt: \"{{ start }}\"\nchoices: [\"{{ right }}\", \"{{ wrong }}\"]\ngold: \"{{ 0 }}\"\nmetrics: [acc, acc_norm]\n");
    dir_.write("tasks/goes_on.yaml",
               "task: goes_on\ntitle: goes on\ngroup: own\nversion: 1\nkind: generate\ndata: {file: pairs.jsonl}\n"
               "prompt: \"{{ start }}\"\ntarget: \"{{ right }}\"\ngenerate: {max_tokens: 4}\nmetrics: [exact_match]\n");
  }

  std::vector<std::string> with_tasks(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"eval.tasks=pairs,goes_on", "eval.data=" + dir_.path("data"), "eval.task_dir=" + dir_.path("tasks")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(LoopEval, TheRunIsTheSameBitByBit) {
  const RunResult plain = train("plain", {}), evaluated = train("evaluated", with_tasks({"eval.every=2"}));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const std::vector<json> a = metrics("plain"), b = metrics("evaluated");
  ASSERT_EQ(a.size(), 6u);
  ASSERT_EQ(b.size(), 6u);
  for (size_t i = 0; i < a.size(); ++i)
    for (const char* key : {"loss", "grad_norm", "param_norm"}) EXPECT_EQ(a[i][key], b[i][key]) << key << " of step " << i + 1;
  EXPECT_TRUE(lines("plain", "eval.jsonl").empty());
  const std::vector<json> found = lines("evaluated", "eval.jsonl");
  ASSERT_EQ(found.size(), 3u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["step"], 2 * (i + 1));
    EXPECT_EQ(found[i]["tokens"], 2 * (i + 1) * 4 * 32);
    for (const char* key : {"eval/pairs/acc", "eval/pairs/acc_norm", "eval/goes_on/exact_match"})
      EXPECT_TRUE(found[i].contains(key)) << found[i];
  }
  const RunResult diff = run_binary({"ckpt", "diff", "--exit-code", dir_.path("plain"), dir_.path("evaluated")});
  EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
}

// FP8 weights are rounded for their products; an evaluation has the masters, in the run as of its checkpoints.
TEST_F(LoopEval, WithFp8ProductsItScoresWhatTheCheckpointHas) {
  dir_.write("tasks/likely.yaml",
             "task: likely\ntitle: likely\ngroup: own\nversion: 1\nkind: likelihood\ndata: {file: pairs.jsonl}\n"
             "prompt: \"{{ start }}\"\ntarget: \" {{ right }}\"\nmetrics: [acc, perplexity]\n");
  for (const std::string precision : {"fp8", "fp8_sr"}) {
    const std::string plain = precision + "_plain", evaluated = precision + "_evaluated", policy = "train.precision=" + precision;
    const RunResult a = train(plain, {policy}), b = train(evaluated, with_tasks({policy, "eval.every=3", "eval.tasks=likely"}));
    ASSERT_EQ(a.exit_code, 0) << a.err;
    ASSERT_EQ(b.exit_code, 0) << b.err;
    const RunResult diff = run_binary({"ckpt", "diff", "--exit-code", dir_.path(plain), dir_.path(evaluated)});
    EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
    EXPECT_NE(slurp(dir_.path(evaluated + "/log.txt")).find("memory used equals the plan"), std::string::npos);
    const std::vector<json> found = lines(evaluated, "eval.jsonl");
    ASSERT_EQ(found.size(), 2u);
    for (const json& m : found) {
      const RunResult saved = run_binary({"eval", "--checkpoint", dir_.path(evaluated), "--step", fmt::format("{}", m["step"].get<int>()),
                                          "--json", "train.micro_batch=2", "device.threads=1"});
      ASSERT_EQ(saved.exit_code, 0) << saved.err;
      const json results = json::parse(saved.out)["results"]["likely"];
      EXPECT_EQ(results["perplexity,none"], m["eval/likely/perplexity"]) << precision << ", step " << m["step"];
      EXPECT_EQ(results["acc,none"], m["eval/likely/acc"]);
    }
  }
}

TEST_F(LoopEval, TheCacheIsALineOfThePlanAndTheRunUsesIt) {
  const RunResult run = train("evaluated", with_tasks({"eval.every_tokens=256", "eval.at_end=true"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::ifstream in(dir_.path("evaluated/log.txt"));
  const std::string log((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_NE(log.find("keys and values for evaluation: "), std::string::npos) << log;
  EXPECT_NE(log.find("memory used equals the plan"), std::string::npos) << log;
  EXPECT_EQ(lines("evaluated", "eval.jsonl").size(), 3u) << "every second step has 256 tokens more";
}

// What a run that goes back to step 3 will evaluate again is set aside, as its metrics are.
TEST_F(LoopEval, ARunThatGoesBackHasEveryEvaluationOnce) {
  ASSERT_EQ(train("again", with_tasks({"eval.every=2"})).exit_code, 0);
  const std::vector<json> before = lines("again", "eval.jsonl");
  const RunResult back = train("again", with_tasks({"eval.every=2", "checkpoint.resume_from=3"}));
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(lines("again", "eval.jsonl"), before);
}

// An evaluation after the last step that failed, or was cut off, is made by the same command; one that was recorded is not made twice.
TEST_F(LoopEval, TheLastEvaluationIsMadeUpFor) {
  const std::vector<std::string> words = with_tasks({"eval.every=2"});
  ASSERT_EQ(train("run", words).exit_code, 0);
  const std::vector<json> whole = lines("run", "eval.jsonl");
  ASSERT_EQ(whole.size(), 3u);
  for (const size_t recorded : {2, 3}) {
    std::string kept, events;
    for (size_t i = 0; i < recorded; ++i) kept += whole[i].dump() + "\n";
    for (json e : lines("run", "events.jsonl")) {
      if (e["kind"] == "end") e["exit_code"] = 2, e["reason"] = "the tasks' disk was gone";
      events += e.dump() + "\n";
    }
    dir_.write("run/eval.jsonl", kept), dir_.write("run/events.jsonl", events);
    const RunResult rest = train("run", words);
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_EQ(lines("run", "eval.jsonl"), whole) << recorded;
    EXPECT_EQ(metrics("run").size(), 6u);
    EXPECT_EQ(this->events("run", "end").back()["exit_code"], 0);
  }
}

TEST_F(LoopEval, EveryEvaluationIsALineOfTheLogAndOnTheScreen) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "the fox ";
  dir_.write("data/long.jsonl", "{\"start\": \"" + text + "\", \"right\": \"fox\"}\n");
  dir_.write("tasks/long.yaml",
             "task: long\ntitle: long\ngroup: own\nversion: 1\nkind: generate\ndata: {file: long.jsonl}\n"
             "prompt: \"{{ start }}\"\ntarget: \"{{ right }}\"\ngenerate: {max_tokens: 2}\nmetrics: [exact_match]\n");
  const RunResult run = train("evaluated", with_tasks({"eval.every=2", "eval.tasks=pairs,long"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string log = slurp(dir_.path("evaluated/log.txt"));
  const std::vector<json> found = lines("evaluated", "eval.jsonl");
  for (const int64_t step : {2, 4, 6}) {
    const json& m = found.at(static_cast<size_t>(step) / 2 - 1);
    const std::string line =
        fmt::format("step {}: pairs acc {:.3f}, acc_norm {:.3f}; long exact_match {:.3f}; 4 examples in ", step,
                    m["eval/pairs/acc"].get<double>(), m["eval/pairs/acc_norm"].get<double>(), m["eval/long/exact_match"].get<double>());
    EXPECT_NE(log.find(line), std::string::npos) << line << "\n" << log;
    EXPECT_NE(run.err.find("\n" + line), std::string::npos) << line << "\n" << run.err;
  }
  const std::string cut = "long: 1 request is longer than the model reads, cut on the left";
  EXPECT_NE(log.find(cut), std::string::npos) << log;
  EXPECT_EQ(log.find(cut), log.rfind(cut)) << "told once";
}

TEST_F(LoopEval, WhatIsMissingIsToldBeforeAnythingIsWritten) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
    const RunResult run = train("refused", words);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find(text), std::string::npos) << run.err;
    EXPECT_FALSE(std::filesystem::exists(dir_.path("refused")));
  };
  refused({"eval.every=2"}, "needs eval.tasks");
  refused({"eval.every=2", "eval.tasks=pairs"}, "needs eval.data");
  refused(with_tasks({"eval.every=2", "eval.data=nowhere"}), "eval.data");
  refused(with_tasks({"eval.every=2", "eval.tasks=pears"}), "pairs");
  refused(with_tasks({"eval.every=2", "eval.tasks=humaneval"}), "humaneval runs programs");
  refused(with_tasks({"eval.every=2", "eval.cache_tokens=31"}), "train.seq_len");
  dir_.write("data/pairs.jsonl", "{\"start\": \"the fox\", \"right\": \"yelped\"}\n");
  refused(with_tasks({"eval.every=2"}), "pairs.jsonl:1");
}

}  // namespace
}  // namespace hlat::test
