// The model of an executor, on any mesh: requests are shared among the replicas, each answers its own, and all ranks get all answers.
#pragma once

#include "eval/language_model.h"
#include "model/kv_passes.h"

namespace hlat {

class ExecutorModel final : public LanguageModel {
 public:
  // The passes must outlive this.
  explicit ExecutorModel(KvPasses& passes) : passes_(passes) {}

  int64_t max_length() const override { return passes_.limits().length; }
  int64_t vocab() const override { return passes_.executor().config().model.vocab; }
  std::vector<Score> score(std::span<const ScoreRequest> requests, const Told& told) override;
  std::vector<Generation> generate(std::span<const GenerateRequest> requests, const KeepOn& keep, const Told& told) override;

 private:
  KvPasses& passes_;
};

}  // namespace hlat
