// hlat generate as a user runs it: the known text of stories260K where this machine has its weights, and a model of the embedded corpus.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

RunResult generate(const std::string& checkpoint, const Words& more) {
  Words words = {"generate", "--checkpoint", checkpoint, "device.backend=cpu"};
  words.insert(words.end(), more.begin(), more.end());
  return run_binary(words);
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  return all;
}

// hlat in a terminal of its own.
class Terminal {
 public:
  explicit Terminal(Words words) {
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    setenv("TERM", "xterm", 1);  // as progress lines need it
    words.insert(words.begin(), hlat_binary());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Terminal() { close(fd_); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys) const { EXPECT_EQ(write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size())); }

  // What is shown until `text` is there; empty: until the program ends.
  std::string shown_until(const std::string& text) {
    std::string shown;
    std::array<char, 256> buffer{};
    constexpr int kLimit = 60000;  // milliseconds without a word
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    while (text.empty() || shown.find(text) == std::string::npos) {
      if (poll(&ready, 1, kLimit) <= 0) return shown + "[nothing more came]";
      const ssize_t got = read(fd_, buffer.data(), buffer.size());
      if (got <= 0) break;  // a terminal whose program has ended gives an error
      shown.append(buffer.data(), static_cast<size_t>(got));
    }
    return shown;
  }
  int exit_code() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int fd_ = -1;
  pid_t pid_ = 0;
};

// A model of the embedded corpus after a few steps: it writes something.
class CliGenerate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    const RunResult r = run_binary({"train", "--config", nano_config(), "train.steps=4", "run.sample_lines=0",
                                    "run.dir=" + dir_->path("run"), "device.backend=cpu", "train.global_batch=8", "optim.warmup=2"});
    ASSERT_EQ(r.exit_code, 0) << r.err;
  }
  static void TearDownTestSuite() { delete dir_; }
  static std::string run() { return dir_->path("run"); }
  static RunResult ask(const Words& more) { return generate(run(), more); }
  // The text of a prompt as one JSON object.
  static Json object(Words more) {
    more.emplace_back("--json");
    const RunResult r = ask(more);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return Json::parse(r.out);
  }

  inline static TempDir* dir_ = nullptr;
};

TEST(CliGenerateStories, GreedyTextIsTheKnownOne) {
  const std::filesystem::path weights = source_path("../shared/data/weights/stories260K_hf");
  if (!std::filesystem::exists(weights)) GTEST_SKIP() << "the weights of stories260K are not on this machine";
  const TempDir dir;
  ASSERT_EQ(run_binary({"ckpt", "import", weights.string(), dir.path("in")}).exit_code, 0);
  const Json known = Json::parse(slurp((weights / "greedy_200.json").string()));
  const RunResult whole = generate(dir.path("in"), {"--prompt", "", "--bos", "on", "--max-tokens", "200", "--json"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Json printed = Json::parse(whole.out);
  EXPECT_EQ(printed["tokens"], known["ids"]);
  EXPECT_EQ(printed["text"], known["text"]);
  EXPECT_EQ(printed["reason"], "length");
  EXPECT_EQ(printed["prompt_tokens"], 1);
  const RunResult streamed = generate(dir.path("in"), {"--prompt", "", "--bos", "on", "--max-tokens", "200"});
  EXPECT_EQ(streamed.out, known["text"].get<std::string>() + "\n");
  // Its own beginning as a prompt gives the rest of it, with the blank between them.
  const std::string text = known["text"], begin = "Once upon a time";
  ASSERT_TRUE(text.starts_with(begin));
  const RunResult rest = generate(dir.path("in"), {"--prompt", begin, "--bos", "on", "--max-tokens", "20"});
  EXPECT_TRUE(text.substr(begin.size()).starts_with(rest.out.substr(0, rest.out.size() - 1))) << rest.out;
  const RunResult stopped =
      generate(dir.path("in"), {"--prompt", "", "--bos", "on", "--max-tokens", "200", "--stop", " girl", "--stop", "zzz"});
  EXPECT_EQ(stopped.out, "Once upon a time, there was a little\n");
}

TEST_F(CliGenerate, AStreamIsTheTextOfTheObjectAndOfABatch) {
  const Json printed = object({"--prompt", "the cat", "--max-tokens", "30"});
  EXPECT_EQ(printed["tokens"].size(), 30u);
  EXPECT_EQ(printed["prompt"], "the cat");
  const RunResult streamed = ask({"--prompt", "the cat", "--max-tokens", "30"});
  EXPECT_EQ(streamed.out, printed["text"].get<std::string>() + "\n");
  EXPECT_NE(streamed.err.find("30 tokens in "), std::string::npos) << streamed.err;
  EXPECT_EQ(ask({"--prompt-file", dir_->write("prompt.txt", "the cat\n"), "--max-tokens", "30"}).out, streamed.out);
  const std::string in = dir_->write("in.jsonl", R"({"prompt": "Jack the cheerful", "id": 7}
{"prompt": "the cat", "max_tokens": 30}

{"prompt": "", "max_tokens": 2}
)");
  const RunResult batch = ask({"--batch", in, "--max-tokens", "5", "--out", dir_->path("out.jsonl"), "--logprobs"});
  ASSERT_EQ(batch.exit_code, 0) << batch.err;
  EXPECT_EQ(batch.out, "");
  const std::vector<Json> lines = json_lines(slurp(dir_->path("out.jsonl")));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["id"], 7);
  EXPECT_EQ(lines[0]["tokens"].size(), 5u);
  EXPECT_EQ(lines[1]["text"], printed["text"]);
  EXPECT_EQ(lines[1]["logprobs"].size(), 30u);
  for (const Json& p : lines[1]["logprobs"]) EXPECT_LE(p.get<double>(), 0);
  EXPECT_EQ(lines[2]["tokens"].size(), 2u);
}

TEST_F(CliGenerate, ASeedDrawsTheSameTextAndLinesOfABatchDiffer) {
  const Words draws = {"--prompt", "the", "--max-tokens", "20", "--temperature", "1.5", "--top-p", "0.99"};
  const auto with = [&](const Words& more) {
    Words words = draws;
    words.insert(words.end(), more.begin(), more.end());
    return object(words);
  };
  const Json first = with({"--seed", "3"});
  EXPECT_EQ(first, with({"--seed", "3"}));
  EXPECT_NE(first["tokens"], with({"--seed", "4"})["tokens"]);
  const std::string in = dir_->write("same.jsonl", "{\"prompt\": \"the\"}\n{\"prompt\": \"the\"}\n{\"prompt\": \"the\", \"seed\": 3}\n");
  const RunResult batch = ask({"--batch", in, "--max-tokens", "20", "--temperature", "1.5", "--top-p", "0.99", "--seed", "3"});
  ASSERT_EQ(batch.exit_code, 0) << batch.err;
  const std::vector<Json> lines = json_lines(batch.out);
  EXPECT_EQ(lines[0]["tokens"], first["tokens"]);
  EXPECT_NE(lines[1]["tokens"], first["tokens"]);
  EXPECT_EQ(lines[1]["seed"], 4);
  EXPECT_EQ(lines[2]["tokens"], first["tokens"]);
  const RunResult told = ask({"--prompt", "the", "--max-tokens", "3", "--temperature", "1"});
  EXPECT_NE(told.err.find(", --seed "), std::string::npos) << told.err;
}

TEST_F(CliGenerate, LogprobsAreShownBehindTheText) {
  const RunResult r = ask({"--prompt", "the cat", "--max-tokens", "4", "--logprobs"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 6) << r.out;
  EXPECT_NE(r.out.find("\n\n  -"), std::string::npos) << r.out;
}

TEST_F(CliGenerate, APromptThatIsTooLongIsCutOnTheLeftAndThatIsTold) {
  std::string prompt;
  for (int i = 0; i < 3000; ++i) prompt += "the cat ";
  const RunResult r = ask({"--prompt-file", dir_->write("long.txt", prompt), "--max-tokens", "4"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.err.find("the prompt is longer than the model can read: "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("4 tokens in "), std::string::npos) << r.err;
}

TEST_F(CliGenerate, InATerminalALineGoesInAndATextComesOutUntilCtrlD) {
  const std::string text = object({"--prompt", "the cat", "--max-tokens", "6"})["text"];
  Terminal terminal({"generate", "--checkpoint", run(), "device.backend=cpu", "--max-tokens", "6"});
  const std::string hint = terminal.shown_until("> ");
  EXPECT_TRUE(hint.ends_with("\na line and Enter: the model goes on from it; Ctrl-D ends\r\n> ")) << hint;
  terminal.type("the cat\n");
  EXPECT_EQ(terminal.shown_until("> "), "the cat\r\n" + text + "\r\n> ");
  terminal.type("the xylophone\n");
  const std::string word = terminal.shown_until("> ");
  EXPECT_NE(word.find("'xylophone'"), std::string::npos) << word << ": and it goes on";
  terminal.type("\x04");
  EXPECT_NE(terminal.shown_until("").find("6 tokens in "), std::string::npos);
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST_F(CliGenerate, CtrlCEndsATextBehindATokenAndALineThatIsTyped) {
  Terminal writes(
      {"generate", "--checkpoint", run(), "device.backend=cpu", "--prompt", "the cat", "--max-length", "30000", "--max-tokens", "29000"});
  writes.shown_until("\n");
  writes.shown_until(" ");
  writes.type("\x03");
  const std::string end = writes.shown_until("");
  EXPECT_NE(end.find("\r\nhlat: SIGINT\r\n"), std::string::npos) << "a token may come after it";
  EXPECT_EQ(writes.exit_code(), 130);
  Terminal waits({"generate", "--checkpoint", run(), "device.backend=cpu"});
  waits.shown_until("> ");
  waits.type("\x03");
  EXPECT_TRUE(waits.shown_until("").ends_with("\r\nhlat: SIGINT\r\n"));
  EXPECT_EQ(waits.exit_code(), 130);
}

TEST_F(CliGenerate, InATerminalObjectsAndLogprobsAreForTypedLinesToo) {
  const Json object = this->object({"--prompt", "the cat", "--max-tokens", "6", "--logprobs"});
  Terminal terminal({"generate", "--checkpoint", run(), "device.backend=cpu", "--max-tokens", "6", "--json", "--logprobs"});
  terminal.shown_until("> ");
  terminal.type("the cat\n");
  std::string shown = terminal.shown_until("> ");
  ASSERT_TRUE(shown.starts_with("the cat\r\n{") && shown.ends_with("}\r\n> ")) << shown;
  EXPECT_EQ(Json::parse(shown.substr(9, shown.size() - 11)), object);
  terminal.type("\x04");
  terminal.shown_until("");
  EXPECT_EQ(terminal.exit_code(), 0);
  Terminal plain({"generate", "--checkpoint", run(), "device.backend=cpu", "--max-tokens", "6", "--logprobs"});
  plain.shown_until("> ");
  plain.type("the cat\n");
  shown = plain.shown_until("> ");
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 9) << "the line, its text, an empty line and 6 tokens: " << shown;
  plain.type("\x04");
  plain.shown_until("");
  EXPECT_EQ(plain.exit_code(), 0);
}

TEST_F(CliGenerate, InATerminalCtrlCEndsTheTextAndTheNextLineComes) {
  Terminal terminal({"generate", "--checkpoint", run(), "device.backend=cpu", "--max-length", "30000", "--max-tokens", "29000"});
  terminal.shown_until("> ");
  for (int i = 0; i < 2; ++i) {
    terminal.type("the cat\n");
    terminal.shown_until("\n");
    terminal.shown_until(" ");
    terminal.type("\x03");
    const std::string end = terminal.shown_until("> ");
    EXPECT_TRUE(end.ends_with("\r\n> ")) << end;
    EXPECT_EQ(end.find("SIGINT"), std::string::npos) << end;
  }
  terminal.type("\x04");
  const std::string end = terminal.shown_until("");
  EXPECT_NE(end.find(" tokens in "), std::string::npos) << end;
  EXPECT_EQ(end.find("\n0 tokens"), std::string::npos) << end;
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST_F(CliGenerate, ABatchThatIsInterruptedKeepsItsFirstAnswers) {
  std::string prompts;
  constexpr size_t kAll = 20000;
  for (size_t i = 0; i < kAll; ++i) prompts += "{\"prompt\": \"the cat\", \"id\": " + std::to_string(i) + "}\n";
  const std::string out = dir_->path("kept.jsonl");
  Terminal terminal({"generate", "--checkpoint", run(), "device.backend=cpu", "--batch", dir_->write("many.jsonl", prompts), "--out", out,
                     "--max-tokens", "40"});
  const std::string shown = terminal.shown_until(", ETA ");
  EXPECT_NE(shown.find(" of 20000 prompts"), std::string::npos) << shown;
  const auto begun = [&] { return std::filesystem::exists(out) && std::filesystem::file_size(out) > 0; };
  for (int i = 0; i < 6000 && !begun(); ++i) usleep(10000);
  ASSERT_TRUE(begun()) << "before all prompts are answered";
  terminal.type("\x03");
  const std::string end = terminal.shown_until("");
  EXPECT_EQ(terminal.exit_code(), 130);
  const std::vector<Json> answers = json_lines(slurp(out));
  ASSERT_FALSE(answers.empty());
  EXPECT_LT(answers.size(), kAll);
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i]["id"], i);
  EXPECT_NE(end.find(std::to_string(answers.size()) + " of 20000 prompts are answered, in " + out + "; with --continue the same command"),
            std::string::npos)
      << end;
}

TEST_F(CliGenerate, ABatchContinuesBehindTheAnswersThatAreThere) {
  const std::string first = "{\"prompt\": \"the cat\", \"id\": 1}\n{\"prompt\": \"the fox\"}\n",
                    rest = "{\"prompt\": \"the cat\"}\n{\"prompt\": \"the owl\"}\n";
  const std::string all = dir_->write("all.jsonl", first + rest), out = dir_->path("continued.jsonl");
  const RunResult whole = ask({"--batch", all, "--max-tokens", "5"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(ask({"--batch", dir_->write("first.jsonl", first), "--max-tokens", "5", "--out", out}).exit_code, 0);
  dir_->write("continued.jsonl", slurp(out) + "{\"prompt\":\"the c");  // what a process that was killed left
  const RunResult continued = ask({"--batch", all, "--max-tokens", "5", "--out", out, "--continue"});
  ASSERT_EQ(continued.exit_code, 0) << continued.err;
  EXPECT_NE(continued.err.find("2 of 4 prompts are answered already\n"), std::string::npos) << continued.err;
  EXPECT_NE(continued.err.find("10 tokens in "), std::string::npos) << continued.err;
  EXPECT_EQ(slurp(out), whole.out);
  const RunResult again = ask({"--batch", all, "--max-tokens", "5", "--out", out, "--continue"});
  EXPECT_EQ(again.err, "4 of 4 prompts are answered already\n");
  EXPECT_EQ(slurp(out), whole.out);
  const RunResult other = ask({"--batch", dir_->write("rest.jsonl", rest), "--out", out, "--continue"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("line 1 is no answer to prompt 1 of this batch"), std::string::npos) << other.err;
}

TEST_F(CliGenerate, WhatChangesNothingIsTold) {
  const RunResult greedy = ask({"--prompt", "the cat", "--max-tokens", "3", "--top-p", "0.9", "--top-k", "5", "--seed", "3"});
  EXPECT_EQ(greedy.exit_code, 0);
  EXPECT_EQ(greedy.err.find("warning: the temperature is 0, so the likeliest token is taken: top-k, top-p, seed change nothing\n"), 0u)
      << greedy.err;
  const RunResult line = ask({"--batch", dir_->write("p.jsonl", "{\"prompt\": \"the cat\", \"min_p\": 0.1}\n"), "--max-tokens", "3"});
  EXPECT_NE(line.err.find("taken: min-p changes nothing\n"), std::string::npos) << line.err;
  const RunResult drawn = ask({"--prompt", "the cat", "--max-tokens", "3", "--top-p", "0.9", "--seed", "3", "--temperature", "1"});
  EXPECT_EQ(drawn.err.find("warning"), std::string::npos) << drawn.err;
  const RunResult longer = ask({"--prompt", "the cat", "--max-tokens", "3", "--max-length", "5000"});
  EXPECT_NE(longer.err.find("warning: texts of up to 5000 tokens, but the model was trained with "), std::string::npos) << longer.err;
}

TEST_F(CliGenerate, MoreTokensThanTheModelReadsAreRefusedBeforeItsWeightsAreRead) {
  const std::string copy = dir_->path("copy");
  std::filesystem::copy(run(), copy, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy + "/checkpoints"))
    if (entry.is_regular_file() && entry.path().extension() != ".json") std::filesystem::resize_file(entry.path(), 0);
  ASSERT_NE(generate(copy, {"--prompt", "the cat", "--max-tokens", "3"}).exit_code, 0) << "the weights are gone";
  const RunResult r = generate(copy, {"--prompt", "the cat", "--max-tokens", "100000"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_NE(r.err.find("max_tokens = 100000: the model reads "), std::string::npos) << r.err;
}

TEST_F(CliGenerate, WrongInputsAreNamed) {
  const std::string bad = dir_->write("bad.jsonl", R"({"prompt": "good"}
{"prompt": 3}
not json
{"text": "x"}
{"prompt": "x", "temprature": 1}
{"prompt": "x", "top_p": 3}
{"prompt": "x", "stop": [1]}
{"prompt": "x", "max_tokens": 0}
[1]
{"prompt": "x", "seed": -1}
{"prompt": "x", "stop": ""}
)");
  const struct {
    Words words;
    std::string message;
  } cases[] = {
      {{"--prompt", "x", "--temperature", "-1"}, "temperature = -1: must be a number from 0 (greedy) on\n"},
      {{"--prompt", "x", "--top-p", "1.5"}, "top_p = 1.5: must be from 0 to 1 (all tokens)\n"},
      {{"--prompt", "x", "--repetition-penalty", "0"}, "repetition_penalty = 0: must be a number above 0; 1 is none\n"},
      {{"--prompt", "x", "--stop", ""}, "stop: an empty text stops nothing\n"},
      {{"--prompt", "x", "--max-tokens", "100000"}, "max_tokens = 100000: the model reads "},
      {{"--prompt", "x", "--max-tokens", "0"}, "--max-tokens: "},
      {{"--prompt", "x", "--prompt-file", "y"}, "--prompt"},
      {{"--prompt-file", dir_->path("none.txt")}, "--prompt-file " + dir_->path("none.txt") + ": cannot be read: No such file"},
      {{"--prompt", "x", "--top-p", "2", "--min-p", "-1", "--top-k", "-3", "--repetition-penalty", "0"},
       "top_k = -3: must be a count from 0 (all tokens) on\ntop_p = 2: must be from 0 to 1 (all tokens)\nmin_p = -1: must be from 0 (all "
       "tokens) to 1\nrepetition_penalty = 0: must be a number above 0; 1 is none\n"},
      {{"--prompt", "x", "--seed", "-4"}, "--seed: -4: must be a whole number from 0 on\n"},
      {{"Once upon"}, "'Once upon' is no section.key=value; a prompt is given as --prompt 'Once upon'\n"},
      {{"--batch", bad, "--continue"}, "--continue requires --out"},
      {{}, "there is no prompt: give --prompt, --prompt-file or --batch, or type one in a terminal\n"},
      {{"--batch", dir_->write("empty.jsonl", "\n")}, dir_->path("empty.jsonl") + ": there is no prompt in it\n"},
      {{"--batch", bad, "--out", bad}, "--out " + bad + ": it is there already; give another name, or --continue"},
      {{"--prompt", "x", "--out", "y"}, "--out requires --batch"},
      {{"--prompt", "x", "parallel.tq=2"}, "tq"},
      {{"--prompt", "x", "--tokenizer", dir_->path("none.json")}, dir_->path("none.json") + ": there is no such file"},
  };
  for (const auto& c : cases) {
    const RunResult r = ask(c.words);
    EXPECT_EQ(r.exit_code, 2) << c.message << r.err;
    EXPECT_NE(r.err.find(c.message), std::string::npos) << c.message << "\n" << r.err;
    EXPECT_EQ(r.out, "");
  }
  const RunResult r = ask({"--batch", bad, "--out", dir_->path("never.jsonl")});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.err.find(bad + ": lines that cannot be used; nothing was generated\n  line 2: prompt: must be a text\n  line 3: not JSON: "),
            0u)
      << r.err;
  for (const char* line : {"\n  line 4: ", "\n  line 5: unknown key temprature; did you mean temperature?\n",
                           "\n  line 6: top_p = 3: must be from 0 to 1", "\n  line 7: stop: must be a text or a list of texts\n",
                           "\n  line 8: max_tokens: must be 1 or more\n", "\n  line 9: must be a JSON object",
                           "\n  line 10: seed: must be a whole number from 0 on\n", "\n  line 11: stop: an empty text stops nothing\n"})
    EXPECT_NE(r.err.find(line), std::string::npos) << line << "\n" << r.err;
  EXPECT_FALSE(std::filesystem::exists(dir_->path("never.jsonl")));
  // What only the tokenizer finds: this one has the words of its corpus alone.
  const RunResult word = ask({"--batch", dir_->write("word.jsonl", "{\"prompt\": \"the cat\"}\n{\"prompt\": \"the xylophone\"}\n")});
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_NE(word.err.find("word.jsonl: lines that cannot be used; nothing was generated\n  line 2: 'xylophone'"), std::string::npos)
      << word.err;
  EXPECT_EQ(ask({"--prompt", "the xylophone"}).exit_code, 2);
  const RunResult none = generate(dir_->path("nowhere"), {"--prompt", "x"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find(dir_->path("nowhere")), std::string::npos) << none.err;
}

}  // namespace
}  // namespace hlat::test
