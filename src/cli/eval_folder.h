// The folder of an evaluation: evaluation.json (what is evaluated and how: once there are answers, a later call must ask for the same),
// results.json and samples/.
// One process at a time writes there.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/eval_args.h"
#include "eval/results_file.h"
#include "record/folder_lease.h"

namespace hlat {

// All that decides the answers of a model and what it is asked, but for the tasks.
nlohmann::ordered_json identity_of(const EvalArgs& args, const CheckpointIndex& index);

// RUN/eval/step_N for a checkpoint of a run, else eval/step_N beside it.
std::filesystem::path default_folder(const std::filesystem::path& checkpoint);

class EvalFolder {
 public:
  // Makes it where needed. UsageError: it has another evaluation, with what differs, or another process writes to it.
  EvalFolder(std::filesystem::path path, const nlohmann::ordered_json& identity);

  const std::filesystem::path& path() const { return path_; }
  const std::string& by() const { return by_; }  // stands for the identity
  Results& results() { return results_; }        // with those of earlier calls
  void save();

  // What a folder has of just this evaluation; nothing is written. None: there is none.
  static std::optional<Results> find(const std::filesystem::path& path, const nlohmann::ordered_json& identity);

 private:
  std::filesystem::path path_;
  std::unique_ptr<FolderLease> lease_;
  std::string by_;
  Results results_;
};

}  // namespace hlat
