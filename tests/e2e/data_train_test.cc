// Runs of the real binary on files: sample, inspect, train on them twice, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/metrics_lines.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using nlohmann::json;

// A folder with stories, their tokenizer and a config that trains on two halves of them.
class CliData : public testing::Test {
 protected:
  CliData() {
    EXPECT_EQ(run_binary({"data", "sample", "--out", dir.path("data"), "--documents", "200"}).exit_code, 0);
    EXPECT_EQ(run_binary({"data", "sample", "--out", dir.path("more"), "--documents", "100", "--seed", "9"}).exit_code, 0);
    config = dir.write("c.yaml", "run: {dir: " + dir.path("run") +
                                     "}\n"
                                     "model: {layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 2048}\n"
                                     "train: {steps: 6, seq_len: 32, global_batch: 4, micro_batch: 2}\n"
                                     "optim: {lr: 5e-3}\n"
                                     "device: {threads: 1}\n"
                                     "data:\n"
                                     "  tokenizer: " +
                                     dir.path("data/tokenizer.json") +
                                     "\n"
                                     "  sources:\n"
                                     "    - {name: stories, path: " +
                                     dir.path("data/*.jsonl") +
                                     ", weight: 2}\n"
                                     "    - {name: more, path: " +
                                     dir.path("more/stories.jsonl") +
                                     "}\n"
                                     "  stages:\n"
                                     "    - {from_step: 4, weights: {more: 1}}\n"
                                     "  validation: 0.05\n"
                                     "  validate_every: 2\n");
  }
  RunResult train(std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"train", "--config", config};
    args.insert(args.end(), more.begin(), more.end());
    return run_binary(args);
  }

  TempDir dir;
  std::string config;
};

TEST_F(CliData, TrainsOnFilesTheSameWayTwice) {
  const RunResult r = train();
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"final loss", "held out", "perplexity", "bits per byte"})
    EXPECT_NE(r.out.find(text), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("floor"), std::string::npos) << "nobody knows the entropy of these files";
  const std::string log = slurp(dir.path("run/log.txt"));
  EXPECT_NE(r.out.find("\xEF\xBF\xBD"), std::string::npos) << "single bytes, which this tokenizer has, are no characters: " << r.out;
  for (const std::string& text : {r.out, log}) EXPECT_NO_THROW((void)json(text).dump()) << "it is UTF-8";
  for (const char* text : {"source stories: 1 file, 200 documents", "from step 4", "768 tokens", "none lost to packing"})
    EXPECT_NE(log.find(text), std::string::npos) << text << log;
  const std::vector<json> first = metrics_of(dir.path("run"));
  ASSERT_EQ(first.size(), 6u);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].contains("val_loss"), i % 2 == 1) << first[i];
    EXPECT_FALSE(first[i].contains("floor"));
    EXPECT_TRUE(first[i]["data_wait_s"].is_number());
  }
  EXPECT_LT(first[5]["val_loss"], first[1]["val_loss"]);
  EXPECT_GT(first[5]["val_bpb"], 0);
  // Again, with other threads and a deeper queue.
  ASSERT_EQ(train({"data.workers=3", "data.prefetch=5", "run.dir=" + dir.path("again")}).exit_code, 0);
  const std::vector<json> second = metrics_of(dir.path("again"));
  ASSERT_EQ(second.size(), 6u);
  for (size_t i = 0; i < 6; ++i)
    for (const char* key : {"loss", "grad_norm", "param_norm", "val_loss", "val_bpb"})
      EXPECT_EQ(first[i].value(key, json()), second[i].value(key, json())) << i << key;
}

// The rows that the steps tell, of a stop, a resume and a step that was passed over too, are what the ledger counts in the end.
TEST_F(CliData, RowsOfTheStepsAreThoseOfTheLedger) {
  ASSERT_EQ(train({"--skip", "3", "train.steps=4", "optim.schedule_steps=6"}).exit_code, 0);
  const RunResult rest = train({"optim.schedule_steps=6"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  std::map<std::string, int64_t> rows;
  const std::vector<json> lines = metrics_of(dir.path("run"));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[2].value("skipped", 0), 1);
  for (const json& line : lines) {
    EXPECT_EQ(line.contains("rows/stories"), line["step"] < 4) << "it has a weight up to step 3";
    EXPECT_EQ(line.value("rows/stories", 0) + line.value("rows/more", 0), 4);
    rows["stories"] += line.value("rows/stories", 0), rows["more"] += line.value("rows/more", 0);
  }
  const json ledger = json::parse(slurp(dir.path("run/ledger.json")));
  ASSERT_EQ(ledger["total"].size(), 2u);
  EXPECT_EQ(ledger["step"], 6);
  for (const json& line : ledger["total"]) EXPECT_EQ(line["tokens"], 32 * rows[line["source"].get<std::string>()]) << line;
}

// Of a run that is killed in step 6: what it had read when it last validated, or saved.
TEST_F(CliData, TheLedgerIsThereWhileTrainingGoesOn) {
  const std::string killed = "fault.inject=kill rank=0 step=6";
  const struct {
    std::vector<std::string> words;
    int64_t step, skipped;
  } cases[] = {{{"--skip", "2"}, 4, 1}, {{"data.validate_every=0", "checkpoint.every=5"}, 5, 0}, {{"data.validate_every=0"}, 0, 0}};
  for (const auto& c : cases) {
    std::vector<std::string> words = c.words;
    words.push_back(killed);
    ASSERT_NE(train(words).exit_code, 0);
    ASSERT_EQ(metrics_of(dir.path("run")).size(), 5u);
    ASSERT_EQ(std::filesystem::exists(dir.path("run/ledger.json")), c.step > 0) << c.words[0];
    if (c.step > 0) {
      const json ledger = json::parse(slurp(dir.path("run/ledger.json")));
      EXPECT_EQ(ledger["step"], c.step);
      EXPECT_EQ(ledger["total"][0]["tokens"].get<int64_t>() + ledger["total"][1]["tokens"].get<int64_t>(), c.step * 4 * 32);
      EXPECT_EQ(ledger["skipped_rows"], c.skipped * 4);
      EXPECT_EQ(ledger["skipped_tokens"], c.skipped * 4 * 32);
      // A report of the run shows it; so does one that is renewed, which reads the folder again when this file changes.
      const RunResult made = run_binary({"report", dir.path("run"), "--out", dir.path("page.html")});
      if (made.err.find("built without uPlot") == std::string::npos) {
        ASSERT_EQ(made.exit_code, 0) << made.err;
        const std::string html = slurp(dir.path("page.html"));
        const size_t begin = html.find("id=\"data\">") + 10;
        EXPECT_EQ(json::parse(html.substr(begin, html.find("</script>", begin) - begin))["runs"][0]["ledger"], ledger);
      }
    }
    std::filesystem::remove_all(dir.path("run"));
  }
}

TEST_F(CliData, InspectShowsRowsAndStatistics) {
  const RunResult text = run_binary({"data", "inspect", "--config", config, "--step", "2", "--rows", "4"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"---- step 2, lane 0", "---- step 2, lane 3", "<stories ", "<end>", "repeats:", "none is lost", "tokens/s"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  const RunResult r = run_binary({"data", "inspect", "--config", config, "--rows", "3", "--tokens", "5000", "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  EXPECT_EQ(j["shown"].size(), 3u);
  EXPECT_EQ(j["tokens"], j["rows"].get<int64_t>() * 32);
  EXPECT_EQ(j["sources"].size(), 2u);
  EXPECT_EQ(j["sources"][0]["fallback_tokens"], 0);
}

TEST_F(CliData, BenchPrintsATableOfThreads) {
  const RunResult r = run_binary({"bench", "data", "--config", config, "--threads", "2", "--seconds", "0.05", "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  ASSERT_EQ(j["threads"].size(), 2u);
  for (const json& line : j["threads"])
    for (const char* key : {"read_bytes_per_s", "tokenize_bytes_per_s", "tokenize_tokens_per_s", "loader_tokens_per_s"})
      EXPECT_GT(line[key], 0) << key;
}

TEST_F(CliData, SampleNeverOverwritesAndPrintsWithoutAFolder) {
  EXPECT_EQ(run_binary({"data", "sample", "--out", dir.path("data")}).exit_code, 2);
  EXPECT_EQ(run_binary({"data", "sample", "--documents", "3", "--seed", "-1"}).exit_code, 2);
  const RunResult r = run_binary({"data", "sample", "--documents", "3"});
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 3);
  const std::string file = slurp(dir.path("data/stories.jsonl"));
  EXPECT_TRUE(file.starts_with(r.out)) << "the same stories";
}

TEST_F(CliData, RefusesWithTheRightCode) {
  struct Case {
    std::vector<std::string> words;
    int code;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{"model.vocab=1000"}, 2, "model.vocab = 1000: the tokenizer"}, {{"data.stages[0].weights=less:1"}, 2, "no source is called less"},
      {{"data.sources[0].path=" + dir.path("none*")}, 2, "none*"},    {{"data.eos=<none>"}, 2, "data.eos = <none>"},
      {{"data.validate_rows=3"}, 2, "must be a multiple of 2"},       {{"data.sources[0].field=body"}, 2, "body"},
  };
  for (const Case& c : cases) {
    const RunResult r = train(c.words);
    EXPECT_EQ(r.exit_code, c.code) << c.words[0] << "\n" << r.err;
    EXPECT_NE(r.err.find(c.text), std::string::npos) << r.err;
  }
  EXPECT_THROW(slurp(dir.path("run/config.yaml")), std::runtime_error) << "nothing was written before all was checked";
}

}  // namespace
}  // namespace hlat::test
