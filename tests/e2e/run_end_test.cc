// What the real binary leaves when a run ends well or badly: exit codes, whole JSON, the run folder's own words.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"
#include "support/test_device.h"

namespace hlat::test {
namespace {

using nlohmann::json;

std::vector<std::string> tiny(const TempDir& dir, const std::vector<std::string>& more = {}, const std::string& data = "") {
  const std::string config = dir.write("tiny.yaml", std::string("model: {layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 512}\n") +
                                                        "train: {steps: 3, seq_len: 32, global_batch: 4, micro_batch: 4}\n"
                                                        "run: {tensorboard: false}\ndevice: {backend: cpu, threads: 1}\n" +
                                                        data);
  std::vector<std::string> args = {"train", "--config", config, "run.dir=" + dir.path("run")};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

json last_event(const TempDir& dir) {
  std::ifstream in(dir.path("run/events.jsonl"));
  json last;
  for (std::string line; std::getline(in, line);) last = json::parse(line);
  return last;
}

// The characters by which byte-level tokenizers name bytes.
std::string byte_name(int byte) {
  const auto printed = [](int b) { return (0x21 <= b && b <= 0x7e) || (0xa1 <= b && b <= 0xac) || (0xae <= b && b <= 0xff); };
  int code = byte, others = 0;
  for (int b = 0; b < byte; ++b) others += printed(b) ? 0 : 1;
  if (!printed(byte)) code = 256 + others;
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// A tokenizer of single bytes and text for it, as a section of a config.
std::string byte_data(const TempDir& dir) {
  json vocab;
  for (int b = 0; b < 256; ++b) vocab[byte_name(b)] = b;
  vocab["<eos>"] = 256;
  const json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const json tokenizer = {{"version", "1.0"},
                          {"added_tokens",
                           {{{"id", 256},
                             {"content", "<eos>"},
                             {"special", true},
                             {"single_word", false},
                             {"lstrip", false},
                             {"rstrip", false},
                             {"normalized", false}}}},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", level},
                          {"post_processor", nullptr},
                          {"decoder", level},
                          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}}};
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += json{{"text", "a few words, number " + std::to_string(i) + ", for a model of bytes"}}.dump() + "\n";
  return "data: {tokenizer: " + dir.write("bytes.json", tokenizer.dump()) +
         ", eos: <eos>, sources: [{path: " + dir.write("text.jsonl", lines) + "}]}\n";
}

TEST(RunEnd, TheJsonSummaryIsValidWhateverTheModelWrites) {
  const TempDir dir;
  const RunResult r = run_binary(tiny(dir, {"--json", "train.steps=1", "run.sample_lines=4"}, byte_data(dir)));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  ASSERT_EQ(j["samples"].size(), 4u);
  std::string all;
  for (const std::string text : j["samples"]) all += text;
  EXPECT_NE(all.find("\xef\xbf\xbd"), std::string::npos) << "an untrained model of bytes writes no UTF-8";
}

TEST(RunEnd, EveryKindOfBadInputIsTwo) {
  const TempDir dir;
  const std::string folder = dir.path("tiny.yaml/below");
  const std::vector<std::vector<std::string>> cases = {{"run.dir=" + folder},
                                                       {"run.dir=/proc/none"},
                                                       {"train.steps=x"},
                                                       {"device.backend=cuda", "device.threads=0"},
                                                       {"model.hidden=65536", "model.heads=512", "model.layers=200", "model.ffn=262144"}};
  for (const auto& words : cases) {
    if (words[0] == "device.backend=cuda" && has_gpu()) continue;
    const RunResult r = run_binary(tiny(dir, words));
    EXPECT_EQ(r.exit_code, 2) << words[0] << "\n" << r.err;
  }
}

TEST(RunEnd, ALossThatIsNotFiniteIsFiveAndRecorded) {
  const TempDir dir;
  const RunResult r = run_binary(tiny(dir, {"optim.lr=100", "optim.weight_decay=1", "train.steps=100"}));
  EXPECT_EQ(r.exit_code, 5) << r.err;
  const json end = last_event(dir);
  EXPECT_EQ(end["kind"], "end");
  EXPECT_EQ(end["exit_code"], 5);
  EXPECT_GE(end["step"], 1);
  EXPECT_NE(slurp(dir.path("run/log.txt")).find("exit code 5: at step "), std::string::npos);
}

TEST(RunEnd, AFinishedRunSaysSo) {
  const TempDir dir;
  ASSERT_EQ(run_binary(tiny(dir)).exit_code, 0);
  EXPECT_EQ(last_event(dir)["reason"], "finished");
  EXPECT_EQ(last_event(dir)["step"], 3);
  EXPECT_NE(slurp(dir.path("run/log.txt")).find("end at step 3, exit code 0: finished"), std::string::npos);
}

// The exit code of the binary in a shell's command.
int code_in_shell(const TempDir& dir, const std::vector<std::string>& args, const std::string& before, const std::string& after) {
  std::string words = hlat_binary();
  for (const std::string& arg : args) words += " '" + arg + "'";
  const std::string command = before + "(" + words + "; echo $? > " + dir.path("rc") + ") " + after;
  EXPECT_NE(std::system(command.c_str()), -1);
  return std::stoi(slurp(dir.path("rc")));
}

TEST(RunEnd, AReaderThatLeavesDoesNotEndTheRun) {
  const TempDir dir;
  EXPECT_EQ(code_in_shell(dir, tiny(dir, {"train.steps=30"}), "", "2>&1 | true"), 0);
  EXPECT_EQ(last_event(dir)["reason"], "finished");
  EXPECT_EQ(last_event(dir)["step"], 30);
}

TEST(RunEnd, AnOutputThatCannotBeStoredIsAFault) {
  const TempDir dir;
  EXPECT_EQ(code_in_shell(dir, tiny(dir), "", ">/dev/full 2>/dev/null"), 4);
  EXPECT_EQ(last_event(dir)["exit_code"], 4);
}

TEST(RunEnd, AFullDiskLeavesWholeLinesAndIsAFault) {
  const TempDir dir;
  // In blocks of 512 bytes or of 1024: a few lines of metrics either way.
  EXPECT_EQ(code_in_shell(dir, tiny(dir, {"train.steps=200"}), "ulimit -f 10; ", "2>" + dir.path("err")), 4);
  EXPECT_TRUE(slurp(dir.path("run/metrics.jsonl")).ends_with("}\n"));
  EXPECT_EQ(last_event(dir)["exit_code"], 4);
  EXPECT_NE(slurp(dir.path("run/log.txt")).find("metrics.jsonl: File too large"), std::string::npos);
}

}  // namespace
}  // namespace hlat::test
