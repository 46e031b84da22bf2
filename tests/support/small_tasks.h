// A folder of small tasks with their data, a tokenizer and a model that answers: all that a run over tasks needs.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "comm/self_comm.h"
#include "eval/task_run.h"
#include "support/fake_language_model.h"
#include "support/temp_dir.h"
#include "support/tokenizer_golden.h"
#include "task/library.h"

namespace hlat::test {

inline constexpr int kSmallExamples = 7;

class SmallTasks {
 public:
  SmallTasks() {
    std::filesystem::create_directories(dir_.path("tasks"));
    std::filesystem::create_directories(dir_.path("data/parts"));
    dir_.write("tasks/pick.yaml",
               "task: pick\ntitle: Pick\ngroup: CR\nversion: 3\nkind: choice\ndata: {file: pick.jsonl}\n"
               "prompt: \"Q: {{ q }}\\nA:\"\nchoices: [\"{{ a }}\", \"{{ b }}\"]\ngold: \"{{ gold }}\"\nmetrics: [acc, acc_norm]\n");
    dir_.write("tasks/parts.yaml",
               "task: parts\ntitle: Parts\ngroup: MMLU\nversion: 1\nkind: choice\ndata: {file: parts/*.jsonl}\n"
               "prompt: \"{{ q }}\"\nchoices: [\"{{ a }}\", \"{{ b }}\"]\ngold: \"{{ gold }}\"\nmetrics: [acc]\n");
    dir_.write("tasks/tell.yaml",
               "task: tell\ntitle: Tell\ngroup: WK\nversion: 1\nkind: generate\ndata: {file: pick.jsonl}\n"
               "prompt: \"Q: {{ q }}\\nA:\"\ntarget: \"{{ a }}\"\ngenerate: {stop: [\"e\"], max_tokens: 12}\nmetrics: [exact_match]\n");
    dir_.write("tasks/read.yaml",
               "task: read\ntitle: Read\ngroup: LM\nversion: 1\nkind: perplexity\ndata: {file: pick.jsonl}\n"
               "text: \"{{ q }} {{ a }} {{ b }}\"\nmetrics: [word_perplexity, byte_perplexity]\n");
    write_pick(kSmallExamples);
    for (const char* part : {"one", "two"}) std::ofstream(dir_.path("data/parts/") + part + ".jsonl") << records(4, part);
  }

  static std::string records(int count, const std::string& name) {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += fmt::format("{{\"q\": \"what is {} number {}\", \"a\": \"the {}th\", \"b\": \"none of them\", \"gold\": {}}}\n", name, i, i,
                           i % 2);
    return lines;
  }
  void write_pick(int count) { dir_.write("data/pick.jsonl", records(count, "thing")); }

  const TempDir& dir() const { return dir_; }
  TaskRunOptions options(const std::string& out = "") const {
    TaskRunOptions o{.tasks = {.data = dir_.path("data")}, .by = "model-1"};
    o.chunk_tokens = 1;  // every example is a chunk
    if (!out.empty()) o.samples = dir_.path(out);
    return o;
  }
  std::vector<const Task*> find(const std::vector<std::string>& names) {
    if (!library_) library_ = std::make_unique<TaskLibrary>(dir_.path("tasks"));
    return library_->find(names);
  }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  EncodingRules rules(int64_t max_length = 256) const {
    return {.bos = false, .begin = tokenizer_->bos(), .end = tokenizer_->eos(), .max_length = max_length};
  }
  FakeLanguageModel model(int64_t max_length = 256) const { return {max_length, tokenizer_->vocab_size()}; }

  // On one rank.
  TaskRunResult run(FakeLanguageModel& model, const std::vector<std::string>& names, const TaskRunOptions& options,
                    const TaskRunHooks& hooks = {}) {
    SelfComm world;
    TextModel text(model, tokenizer(), rules(model.max_length()), world);
    return run_tasks(text, find(names), options, hooks);
  }

 private:
  TempDir dir_;
  std::unique_ptr<Tokenizer> tokenizer_ = load_tokenizer_fixture("gpt2.json");
  std::unique_ptr<TaskLibrary> library_;
};

}  // namespace hlat::test
