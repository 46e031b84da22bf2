// hlat eval with a tiny model, as a user calls it: tables, files, resuming, all checkpoints of a run, comparison, and what wrong input
// says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using Json = nlohmann::json;

const std::string kTokenizer = source_path("tests/fixtures/tokenizer/gpt2.json");

std::string records(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += fmt::format("{{\"q\": \"what is number {}\", \"a\": \"the first\", \"b\": \"none of them\", \"gold\": {}}}\n", i, i % 2);
  return lines;
}

// One run with two checkpoints, for all tests: training it takes longest.
class CliEval : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<TempDir>();
    ASSERT_EQ(run_binary({"data", "sample", "--out", dir_->path("text"), "--documents", "100"}).exit_code, 0);
    std::filesystem::create_directories(dir_->path("tasks"));
    std::filesystem::create_directories(dir_->path("data"));
    dir_->write("data/pick.jsonl", records(6));
    dir_->write("tasks/pick.yaml",
                "task: pick\ntitle: Pick one\ngroup: CR\nversion: 1\nkind: choice\ndata: {file: pick.jsonl}\n"
                "prompt: \"Q: {{ q }}\\nA:\"\nchoices: [\"{{ a }}\", \"{{ b }}\"]\ngold: \"{{ gold }}\"\nmetrics: [acc, acc_norm]\n");
    dir_->write("tasks/tell.yaml",
                "task: tell\ntitle: Tell it\ngroup: WK\nversion: 1\nkind: generate\ndata: {file: pick.jsonl}\n"
                "prompt: \"Q: {{ q }}\\nA:\"\ntarget: \"{{ a }}\"\ngenerate: {stop: [\".\"], max_tokens: 8}\nmetrics: [exact_match]\n");
    dir_->write("tasks/program.yaml",
                "task: program\ntitle: Program\ngroup: Code\nversion: 1\nkind: code\ndata: {file: pick.jsonl}\n"
                "prompt: \"{{ q }}\"\nprogram: \"{{ output }}\"\ngenerate: {max_tokens: 4}\nmetrics: [pass@1]\n");
    dir_->write("tokenizer.json", slurp(kTokenizer));
    const std::string config =
        dir_->write("c.yaml", fmt::format("run: {{dir: {}}}\nmodel: {{layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: auto}}\n"
                                          "train: {{steps: 4, seq_len: 64, global_batch: 4, micro_batch: 2, precision: fp32}}\n"
                                          "device: {{threads: 1}}\ncheckpoint: {{every: 2}}\n"
                                          "data:\n  tokenizer: {}\n  sources: [{{path: {}}}]\n",
                                          run(), dir_->path("tokenizer.json"), dir_->path("text/*.jsonl")));
    const RunResult trained = run_binary({"train", "--config", config});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() { dir_.reset(); }

  static std::string run() { return dir_->path("run"); }
  static RunResult eval(std::vector<std::string> words, bool with_data = true) {
    words.insert(words.begin(), "eval");
    if (with_data) words.insert(words.end(), {"--data", dir_->path("data"), "--task-dir", dir_->path("tasks"), "device.threads=1"});
    return run_binary(words);
  }
  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nwithout: " << part;
  }

  static std::unique_ptr<TempDir> dir_;
};
std::unique_ptr<TempDir> CliEval::dir_;

TEST_F(CliEval, PrintsTheTableAndWritesResultsAndSamples) {
  const std::string out = dir_->path("out");
  const RunResult r = eval({"--checkpoint", run(), "--tasks", "pick,tell", "--out", out});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"CR", "  Pick one", "acc_norm", "WK", "  Tell it", "exact_match"}) expect_has(r.out, text);
  const Json j = Json::parse(slurp(out + "/results.json"));
  EXPECT_EQ(j["n-samples"]["pick"]["effective"], 6);
  EXPECT_EQ(j["config"]["step"], 4);
  EXPECT_EQ(j["config"]["tokens_seen"], 4 * 4 * 64);
  EXPECT_EQ(j["config"]["bos"], false);
  EXPECT_EQ(j["config"]["precision"], "fp32");
  EXPECT_EQ(j["config"]["max_length"], 64);
  const std::string samples = slurp(out + "/samples/pick.jsonl");
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 6);

  // Again, after a part was lost: only that is computed, and nothing else changes.
  std::filesystem::resize_file(out + "/samples/pick.jsonl", samples.size() / 2);
  const RunResult again = eval({"--checkpoint", run(), "--tasks", "pick", "--out", out, "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  expect_has(again.err, "of an earlier run)");
  EXPECT_EQ(slurp(out + "/samples/pick.jsonl"), samples);
  EXPECT_EQ(Json::parse(again.out)["results"]["pick"], j["results"]["pick"]);
  EXPECT_EQ(Json::parse(again.out)["results"]["tell"], j["results"]["tell"]) << "of the call before";

  const RunResult other = eval({"--checkpoint", run(), "--tasks", "pick", "--out", out, "--shots", "2"});
  EXPECT_EQ(other.exit_code, 2);
  expect_has(other.err, "has another evaluation");
  expect_has(other.err, "shots was null, is 2");
}

TEST_F(CliEval, AllCheckpointsOfARunMakeACurve) {
  const RunResult r = eval({run(), "--all", "--tasks", "pick"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json curve = Json::parse(slurp(run() + "/eval/curve.json"))["curve"];
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0]["tokens_seen"], 2 * 4 * 64);
  EXPECT_EQ(curve[1]["step"], 4);
  EXPECT_TRUE(curve[1]["results"]["pick"]["acc,none"].is_number());
  expect_has(r.out, "step  tokens");
  const RunResult again = eval({run(), "--all", "--tasks", "pick"});
  EXPECT_EQ(again.out, r.out);
  expect_has(again.err, "step_2: done already");
  expect_has(again.err, "step_4: done already");

  const std::string curve_before = slurp(run() + "/eval/curve.json");
  const RunResult fewer = eval({run(), "--all", "--tasks", "pick", "--limit", "2"});
  EXPECT_EQ(fewer.exit_code, 2) << fewer.err;
  expect_has(fewer.err, "pick: 6 there, 2 now");
  EXPECT_EQ(slurp(run() + "/eval/curve.json"), curve_before);

  const RunResult compared = eval({"--compare", run() + "/eval/step_4", run() + "/eval/step_2"}, false);
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  expect_has(compared.out, "McNemar, 6 pairs");
  expect_has(compared.out, " of 1 against run step_2");
  const RunResult whole_run = eval({"--compare", run() + "/eval/step_4", run()}, false);
  EXPECT_EQ(whole_run.exit_code, 2);
  expect_has(whole_run.err, "results are in " + run() + "/eval/step_4, " + run() + "/eval/step_2");
  const RunResult published = eval({"--compare", run() + "/eval/step_4", "published"}, false);
  ASSERT_EQ(published.exit_code, 0) << published.err;
  expect_has(published.out, "HLAT-7B (published)");
  EXPECT_NE(published.out.find("41.3"), std::string::npos);
}

TEST_F(CliEval, ComparesEvaluationsOfOneCheckpointByTheirFolders) {
  for (const char* limit : {"2", "4"})
    ASSERT_EQ(
        eval({"--checkpoint", run(), "--tasks", "pick", "--out", dir_->path("limit_" + std::string(limit)), "--limit", limit}).exit_code,
        0);
  const RunResult r = eval({"--compare", dir_->path("limit_2/"), dir_->path("limit_4/results.json")}, false);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  expect_has(r.out, "run step_4 (limit_2) is limited to part of the examples: pick 2 of 6\n");
  expect_has(r.out, "run step_4 (limit_4) is limited to part of the examples: pick 4 of 6\n");
  expect_has(r.out, "+0.0  p=1.0000  McNemar, 2 pairs\n");
  std::filesystem::create_directories(dir_->path("nothing"));
  dir_->write("nothing/results.json", "{\"results\": {}}");
  const RunResult nothing = eval({"--compare", dir_->path("limit_2"), dir_->path("nothing")}, false);
  EXPECT_EQ(nothing.exit_code, 2);
  expect_has(nothing.err, "has results of no task");
}

TEST_F(CliEval, BrokenDataIsToldBeforeAnythingIsComputed) {
  dir_->write("data/broken.jsonl", records(2) + "{\"q\": \"half\n");
  dir_->write("tasks/broken.yaml",
              "task: broken\ntitle: Broken\ngroup: RC\nversion: 1\nkind: choice\ndata: {file: broken.jsonl}\n"
              "prompt: \"{{ q }}\"\nchoices: [\"{{ a }}\", \"{{ b }}\"]\ngold: \"{{ gold }}\"\nmetrics: [acc]\n");
  const std::string out = dir_->path("broken_out");
  const RunResult r = eval({"--checkpoint", run(), "--tasks", "pick,broken", "--out", out});
  EXPECT_EQ(r.exit_code, 2) << r.err;
  expect_has(r.err, "broken.jsonl:3: ");
  const RunResult shots = eval({"--checkpoint", run(), "--tasks", "pick", "--out", out, "--shots", "9"});
  EXPECT_EQ(shots.exit_code, 2) << shots.err;
  expect_has(shots.err, "pick.jsonl: 9 shots need 10 few-shot examples, and there are 6");
  for (const RunResult& refused : {r, shots}) EXPECT_EQ(refused.err.find(" parameters of "), std::string::npos) << "a model was opened";
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(CliEval, ASmallerLimitReplacesNoResults) {
  const std::string out = dir_->path("limited");
  const auto limited = [&](const std::string& limit) {
    return eval({"--checkpoint", run(), "--tasks", "pick, tell", "--out", out, "--limit", limit});
  };
  const RunResult four = limited("4");
  ASSERT_EQ(four.exit_code, 0) << four.err;
  expect_has(four.err, "4 of 6 examples (--limit) in ");
  expect_has(four.out, "4 of 6");
  const std::string results = slurp(out + "/results.json");
  EXPECT_EQ(Json::parse(results)["configs"]["pick"]["limit"], 4);
  const RunResult two = limited("2");
  EXPECT_EQ(two.exit_code, 2) << two.err;
  expect_has(two.err, "results of more examples than --limit 2 asks for");
  expect_has(two.err, "pick: 4 there, 2 now");
  EXPECT_EQ(slurp(out + "/results.json"), results);
  const RunResult all = limited("0");
  ASSERT_EQ(all.exit_code, 0) << all.err;
  expect_has(all.err, "6 examples (4 of an earlier run) in ");
  EXPECT_TRUE(Json::parse(slurp(out + "/results.json"))["configs"]["pick"]["limit"].is_null());

  const RunResult config = eval({"--checkpoint", run(), "--tasks", "pick", "--out", dir_->path("by_config"), "eval.limit=3"});
  ASSERT_EQ(config.exit_code, 0) << config.err;
  expect_has(config.err, "3 of 6 examples (eval.limit) in ");
}

TEST_F(CliEval, ACallThatWasRefusedLeavesItsFolderToOthers) {
  const std::string out = dir_->path("refused");
  const RunResult wrong = eval({"--checkpoint", run(), "--tasks", "pick", "--out", out, "model.layers=7"});
  ASSERT_EQ(wrong.exit_code, 2) << wrong.err;
  const RunResult right = eval({"--checkpoint", run(), "--tasks", "pick", "--out", out});
  EXPECT_EQ(right.exit_code, 0) << right.err;
  const RunResult other = eval({"--checkpoint", run(), "--tasks", "pick", "--out", out, "--bos", "off"});
  EXPECT_EQ(other.exit_code, 2) << "now it has results";
}

TEST_F(CliEval, TasksThatTheModelCannotReadAreRefused) {
  const std::string words = dir_->path("words");
  const std::string config = dir_->write("words.yaml", fmt::format("run: {{dir: {}}}\nmodel: {{layers: 1, hidden: 32, heads: 2, ffn: 64}}\n"
                                                                   "train: {{steps: 1, seq_len: 32, global_batch: 2, micro_batch: 2}}\n"
                                                                   "device: {{threads: 1}}\ncheckpoint: {{every: 1}}\n",
                                                                   words));
  const RunResult trained = run_binary({"train", "--config", config});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const RunResult r = eval({words, "--all", "--tasks", "pick,tell"});
  EXPECT_EQ(r.exit_code, 2) << r.err;
  expect_has(r.err, "the embedded corpus, cannot encode their texts");
  expect_has(r.err, "  pick: 'Q:'");
  expect_has(r.err, "  tell: 'Q:'");
  EXPECT_EQ(r.err.find(" parameters of "), std::string::npos) << "a model was opened";
  EXPECT_EQ(r.out, "");
}

TEST_F(CliEval, WrongInputIsToldBeforeAnythingIsComputed) {
  const auto fails = [&](std::vector<std::string> words, const std::string& text) {
    words.insert(words.begin(), {"--checkpoint", run(), "--out", dir_->path("never")});
    const RunResult r = eval(words);
    EXPECT_EQ(r.exit_code, 2) << r.err;
    expect_has(r.err, text);
    EXPECT_FALSE(std::filesystem::exists(dir_->path("never/results.json")));
  };
  fails({"--tasks", "pik"}, "pick");
  fails({"--tasks", "hellaswag"}, "hellaswag: ");
  fails({"--tasks", "program"}, "--allow-code-execution");
  fails({}, "no tasks are given");
  fails({"--tasks", "pick", "--tokenizer", source_path("tests/fixtures/tokenizer/none.json")}, "none.json");
  fails({"--tasks", "pick", "--step", "3"}, "step");
  EXPECT_EQ(eval({"--tasks", "pick"}).exit_code, 2) << "no model";
  EXPECT_EQ(eval({"--compare", run()}, false).exit_code, 2);
}

TEST_F(CliEval, OptionsThatHaveNoMeaningTogetherAreRefused) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
    const RunResult r = eval(words, false);
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_EQ(r.err.find(text + "\n"), 0u) << r.err;
    EXPECT_EQ(r.out, "");
  };
  refused({run(), "--all", "--step", "2"}, "--all evaluates all checkpoints of a run, --step one of them: give one of the two");
  refused({"--list", "--compare", "published"}, "--list goes without --compare");
  refused({"--show", "piqa", "--list"}, "--list goes without --show");
  refused({"--compare", "published", "--tasks", "piqa", "--limit", "3"}, "--compare goes without --tasks and --limit");
  refused({run(), "--tasks", "pick", "--seed", "-1"}, "--seed: -1: must be a whole number from 0 on");
  refused({run(), "--tasks", "pick", "--fewshot-seed", "-1"}, "--fewshot-seed: -1: must be a whole number from 0 on");
  const RunResult longer = eval({run(), "--tasks", "pick", "--limit", "1", "--max-length", "5000", "--out", dir_->path("longer")});
  EXPECT_EQ(longer.exit_code, 0) << longer.err;
  expect_has(longer.err, "warning: texts of up to 5000 tokens, but the model was trained with ");
  expect_has(longer.err, ", 1 of 6 examples (--limit) in ");
}

TEST_F(CliEval, ATokenizerThatIsNotTheCheckpointsIsTold) {
  // The run's own file has another content by now.
  dir_->write("tokenizer.json", slurp(kTokenizer) + "\n");
  const RunResult changed = eval({"--checkpoint", run(), "--tasks", "pick", "--out", dir_->path("changed")});
  dir_->write("tokenizer.json", slurp(kTokenizer));
  EXPECT_EQ(changed.exit_code, 2) << changed.err;
  expect_has(changed.err, "is not the one that");
  dir_->write("other.json", slurp(kTokenizer) + "\n");
  const RunResult named =
      eval({"--checkpoint", run(), "--tasks", "pick", "--out", dir_->path("named"), "--tokenizer", dir_->path("other.json")});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  expect_has(named.err, "warning: the tokenizer ");
  expect_has(Json::parse(slurp(dir_->path("named/results.json")))["warnings"]["pick"][0], "the tokenizer " + dir_->path("other.json"));
  const RunResult large = eval({"--checkpoint", run(), "--tasks", "pick", "--out", dir_->path("large"), "--tokenizer",
                                source_path("tests/fixtures/tokenizer/llama2.json")});
  EXPECT_EQ(large.exit_code, 2);
  expect_has(large.err, "do not belong together");
}

TEST_F(CliEval, ATokenizerThatIsNotTheImportedModelsIsTold) {
  const std::string folder = dir_->path("hf");
  ASSERT_EQ(run_binary({"ckpt", "export", run(), folder}).exit_code, 0);
  ASSERT_EQ(run_binary({"ckpt", "import", folder, dir_->path("imported")}).exit_code, 0);
  dir_->write("other.json", slurp(kTokenizer) + "\n");
  const auto with = [&](const std::string& out, std::vector<std::string> words) {
    words.insert(words.begin(), {"--checkpoint", dir_->path("imported"), "--tasks", "pick", "--out", dir_->path(out)});
    const RunResult r = eval(words);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return std::pair(r.err, Json::parse(slurp(dir_->path(out + "/results.json"))));
  };
  const auto [err, results] = with("imported_other", {"--tokenizer", dir_->path("other.json")});
  expect_has(err, "warning: the tokenizer " + dir_->path("other.json") + " is not the one that ");
  expect_has(results["warnings"]["pick"][0], "is not the one that ");
  const auto [own_err, own_results] = with("imported_own", {});
  EXPECT_EQ(own_err.find("warning"), std::string::npos) << own_err;
  EXPECT_FALSE(own_results.contains("warnings"));
}

TEST_F(CliEval, ADataFolderThatIsNotThereIsNamed) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"eval", "--list"},
                                                {"eval", "--show", "piqa"},
                                                {"eval", "--checkpoint", run(), "--tasks", "piqa", "--out", dir_->path("never")}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--data", dir_->path("nodata")});
    const RunResult r = run_binary(all);
    EXPECT_EQ(r.exit_code, 2) << r.out;
    expect_has(r.err, "--data " + dir_->path("nodata") + ": there is no such folder");
  }
}

TEST_F(CliEval, ListsTasksAndShowsOne) {
  const RunResult list = eval({"--list"});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  for (const char* text : {"pick", "mmlu", "humaneval", "missing: "}) expect_has(list.out, text);
  const RunResult show = eval({"--show", "pick"});
  ASSERT_EQ(show.exit_code, 0) << show.err;
  expect_has(show.out, "Q: what is number 0\nA:");
  expect_has(show.out, " none of them");
  expect_has(show.out, "headline       acc\n");
  expect_has(show.out, "data           " + dir_->path("data/pick.jsonl") + "\n");
  expect_has(show.out, "--- right answer ---\nrequest 1\n");
  const RunResult shots = eval({"--show", "pick", "--shots", "1"});
  expect_has(shots.out, "num_fewshot    1\n");
  const RunResult missing = eval({"--show", "gsm8k"});
  EXPECT_EQ(missing.exit_code, 2);
  expect_has(missing.out, "num_fewshot    8\n");
  expect_has(missing.err, " is not in " + dir_->path("data"));
}

}  // namespace
}  // namespace hlat::test
