// A saved model, ready to answer: a checkpoint's weights on the mesh of the ranks that were started, with a cache of keys and values, and
// its tokenizer. What hlat eval and hlat generate open.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "data/run_tokenizer.h"
#include "eval/executor_model.h"
#include "runtime/assembly.h"
#include "runtime/session.h"

namespace hlat {

struct EvalModelOptions {
  std::string checkpoint;                   // as find_checkpoint takes it
  std::optional<int64_t> step = {};         // which one of a run; none: the latest
  std::vector<std::string> overrides = {};  // section.key=value: the mesh, the device, train.precision, eval.cache_tokens, ...
  std::string tokenizer = {};               // empty: the checkpoint's own
  int64_t max_length = 0;                   // tokens of a text; 0: as many as the model was trained with
  int64_t pass_tokens = 0;                  // computed at a time; 0: as suits the device
  // Gets the tokens of a text before memory is taken and weights are read; throws where they are too few.
  std::function<void(int64_t max_length)> check_length = {};
};

// The checkpoint's config with these overrides. The model is the checkpoint's; how it is spread and where it runs is this machine's
// business, and train.global_batch is left open. UsageError.
Config evaluation_config(const CheckpointIndex& index, const std::vector<std::string>& overrides, int64_t max_length);

class EvalModel {
 public:
  // Collective over the session's ranks. UsageError where the checkpoint, the mesh or the memory do not allow it. `say` gets lines for the
  // user, on rank 0.
  EvalModel(const EvalModelOptions& options, Session& session, const std::function<void(const std::string&)>& say);

  LanguageModel& model() { return *model_; }
  const RunTokenizer& tokenizer() const { return *tokenizer_; }
  const Config& config() const { return config_; }         // of the evaluation
  const CheckpointIndex& index() const { return index_; }  // of the checkpoint
  const std::filesystem::path& folder() const { return folder_; }
  bool imported() const;  // from a Hugging Face folder
  std::string describe() const { return assembly_->describe(); }
  const RankPlan& plan() const { return assembly_->plan(); }
  Executor& executor() { return placed_->executor(); }

 private:
  void configure(const EvalModelOptions& options, const Session& session);
  void check_tokenizer(bool given, bool leads, const std::function<void(const std::string&)>& say) const;
  void choose_cache(Session& session);

  std::filesystem::path folder_;
  CheckpointIndex index_;
  Config config_;
  std::optional<RunTokenizer> tokenizer_;
  std::unique_ptr<Backend> backend_;
  std::optional<Assembly> assembly_;
  PlacedModel* placed_ = nullptr;
  std::optional<KvPasses> passes_;
  std::optional<ExecutorModel> model_;
};

}  // namespace hlat
