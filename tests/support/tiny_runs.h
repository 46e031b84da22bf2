// Runs of a tiny model with the real binary, each in a folder of the test.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {

class TinyRuns : public testing::Test {
 protected:
  TinyRuns(int64_t steps, int64_t warmup, int64_t save_every)
      : config_(dir_.write("tiny.yaml", fmt::format("model: {{layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn: 64, vocab: 512}}\n"
                                                    "train: {{steps: {0}, seq_len: 32, global_batch: 4, micro_batch: 2}}\n"
                                                    "optim: {{lr: 5e-3, warmup: {1}, schedule_steps: {0}}}\n"
                                                    "run: {{sample_lines: 0}}\n"
                                                    "checkpoint: {{every: {2}, keep: 10}}\n"
                                                    "device: {{backend: cpu, threads: 1}}\n",
                                                    steps, warmup, save_every))) {}

  RunResult train(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"train", "--config", config_, "run.dir=" + dir_.path(run)};
    args.insert(args.end(), more.begin(), more.end());
    return run_binary(args);
  }
  // An object for each line of a file of its folder.
  std::vector<nlohmann::json> lines(const std::string& run, const std::string& file) const {
    std::vector<nlohmann::json> found;
    std::ifstream in(dir_.path(run + "/" + file));
    for (std::string line; std::getline(in, line);) found.push_back(nlohmann::json::parse(line));
    return found;
  }
  std::vector<nlohmann::json> metrics(const std::string& run) const { return lines(run, "metrics.jsonl"); }
  std::vector<nlohmann::json> events(const std::string& run, const std::string& kind) const {
    std::vector<nlohmann::json> found = lines(run, "events.jsonl");
    std::erase_if(found, [&](const nlohmann::json& e) { return e["kind"] != kind; });
    return found;
  }
  std::string step(const std::string& run, int64_t n) const { return dir_.path(run + "/checkpoints/step_" + std::to_string(n)); }

  TempDir dir_;

 private:
  std::string config_;  // its file
};

}  // namespace hlat::test
