// The models that lm-evaluation-harness was asked about (tests/fixtures/eval), made again and opened as a user would open them: a Hugging
// Face folder is written, or taken from the shared data, and imported.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "eval/text_model.h"
#include "runtime/eval_model.h"
#include "support/temp_dir.h"

namespace hlat::test {

class HarnessModel {
 public:
  explicit HarnessModel(const std::string& name);

  const nlohmann::json& fixture() const { return fixture_; }  // answers_NAME.json
  EvalModel& opened() { return *opened_; }
  // As the tokenizer says, or with the switch for BOS.
  EncodingRules rules(std::optional<bool> bos = {}) const;
  TextModel texts(std::optional<bool> bos = {});

 private:
  nlohmann::json fixture_;
  TempDir dir_;
  Session session_;
  std::optional<EvalModel> opened_;
};

}  // namespace hlat::test
