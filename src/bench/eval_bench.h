// Times scoring and generation with the initial weights of a config: rows of random tokens, requests of a file, and texts of 128 new tokens
// after prompts of 128. The shapes are those of tools/hf_eval_baseline.py, to be held against it on the same machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "comm/comm.h"
#include "config/config.h"
#include "ops/cost.h"
#include "ops/device.h"

namespace hlat {

struct EvalBenchOptions {
  std::vector<std::pair<int64_t, int64_t>> dense = {};  // rows x tokens
  std::vector<std::string> requests = {};               // files of {"context": [ids], "continuation": [ids]} per line
  std::vector<int64_t> generate = {};                   // rows
  int64_t times = 3;                                    // each is measured, after one for warming up; the median counts
  bool per_op = false;
};

struct EvalBenchRow {
  std::string what;      // "16 x 512"
  int64_t requests = 0;  // scored; 0: generated
  int64_t tokens = 0;    // read, or generated
  double seconds = 0;
  Cost ops = {};  // of one more time, where it was asked for
};

struct EvalBench {
  std::string machine;
  size_t planned_bytes = 0;
  std::vector<EvalBenchRow> rows;
};

// On every rank of `world`, which the config's mesh must fit; train.seq_len is the longest text, and a pass has the tokens of a
// micro-batch.
EvalBench bench_eval(const Config& config, Backend& backend, Comm& world, int local_ranks, const EvalBenchOptions& options);
std::string eval_bench_text(const EvalBench& bench);
nlohmann::ordered_json eval_bench_json(const EvalBench& bench);

}  // namespace hlat
