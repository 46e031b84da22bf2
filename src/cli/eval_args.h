// What hlat eval was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/eval_model.h"
#include "task/task.h"

namespace hlat {

struct EvalArgs {
  EvalModelOptions model;
  std::vector<std::string> words = {};   // a checkpoint or a run, and section.key=value
  std::vector<std::string> tasks = {};   // empty: eval.tasks of the checkpoint's config
  std::string data = {}, task_dir = {};  // empty: likewise
  std::optional<int64_t> limit = {}, shots = {};
  uint64_t fewshot_seed = TaskOptions{}.fewshot_seed, seed = 0;
  std::string bos = "auto", out = {};
  std::string show = {};
  std::vector<std::string> compare = {};
  bool all = false, list = false, allow_code = false, json = false;
};

}  // namespace hlat
