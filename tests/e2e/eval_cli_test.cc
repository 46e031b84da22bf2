// hlat eval with a tiny model, as a user calls it: tables, files, resuming, all checkpoints of a run, comparison, and what wrong input
// says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kTokenizer = HLAT_SOURCE_DIR "/tests/fixtures/tokenizer/gpt2.json";

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

  const RunResult compared = eval({"--compare", run() + "/eval/step_4", run() + "/eval/step_2"}, false);
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  expect_has(compared.out, "McNemar, 6 pairs");
  expect_has(compared.out, " of 1 against run step_2");
  const RunResult published = eval({"--compare", run() + "/eval/step_4", "published"}, false);
  ASSERT_EQ(published.exit_code, 0) << published.err;
  expect_has(published.out, "HLAT-7B (published)");
  EXPECT_NE(published.out.find("41.3"), std::string::npos);
}

TEST_F(CliEval, ABrokenRecordCostsItsTaskAlone) {
  dir_->write("data/broken.jsonl", records(2) + "{\"q\": \"half\n");
  dir_->write("tasks/broken.yaml",
              "task: broken\ntitle: Broken\ngroup: RC\nversion: 1\nkind: choice\ndata: {file: broken.jsonl}\n"
              "prompt: \"{{ q }}\"\nchoices: [\"{{ a }}\", \"{{ b }}\"]\ngold: \"{{ gold }}\"\nmetrics: [acc]\n");
  const std::string out = dir_->path("broken_out");
  const RunResult r = eval({"--checkpoint", run(), "--tasks", "broken,pick", "--out", out});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  expect_has(r.err, "broken.jsonl");
  const Json j = Json::parse(slurp(out + "/results.json"));
  EXPECT_TRUE(j["results"]["pick"]["acc,none"].is_number());
  expect_has(j["errors"]["broken"], "broken.jsonl");
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
  fails({"--tasks", "pick", "--tokenizer", HLAT_SOURCE_DIR "/tests/fixtures/tokenizer/none.json"}, "none.json");
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
  expect_has(longer.err, ", 1 example in ");
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
  const RunResult large = eval({"--checkpoint", run(), "--tasks", "pick", "--out", dir_->path("large"), "--tokenizer",
                                HLAT_SOURCE_DIR "/tests/fixtures/tokenizer/llama2.json"});
  EXPECT_EQ(large.exit_code, 2);
  expect_has(large.err, "do not belong together");
}

TEST_F(CliEval, ListsTasksAndShowsOne) {
  const RunResult list = eval({"--list"});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  for (const char* text : {"pick", "mmlu", "humaneval", "missing: "}) expect_has(list.out, text);
  const RunResult show = eval({"--show", "pick"});
  ASSERT_EQ(show.exit_code, 0) << show.err;
  expect_has(show.out, "Q: what is number 0\nA:");
  expect_has(show.out, " none of them");
}

}  // namespace
}  // namespace hlat::test
