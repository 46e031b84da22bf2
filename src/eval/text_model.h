// A model that is asked in texts: requests become ids, the ranks of the model answer them together, ids become texts again. Rank 0 asks;
// the others take part until it says that there is no more.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "eval/encode.h"
#include "eval/language_model.h"
#include "eval/request_exchange.h"

namespace hlat {

// A text request in ids.
struct EncodedRequest {
  AskKind kind = AskKind::score;
  std::vector<ScoreRequest> scores = {};  // score: one, or windows of a long continuation; rolling: windows
  GenerateRequest prompt = {};
  std::vector<std::string> stop = {};
  bool truncated = false;  // on the left
};

class TextModel {
 public:
  // All of these must outlive this. The tokenizer is needed on every rank: it finds stop strings.
  TextModel(LanguageModel& model, const Tokenizer& tokenizer, const EncodingRules& rules, Comm& world);

  bool leads() const { return world_.rank() == 0; }
  int64_t max_length() const { return rules_.max_length; }

  EncodedRequest encode(const TextRequest& request);  // UsageError: see RequestEncoder
  // Rank 0: asks the model, with all other ranks. Answers in the order of the requests.
  std::vector<Answer> ask(std::span<const EncodedRequest* const> requests, const LanguageModel::Told& told = {});
  void finish();     // rank 0: the others return from take_part(); not after a failure of the model, which is that of all ranks
  void take_part();  // the other ranks: answer with rank 0 what it asks

 private:
  struct Given {
    std::vector<Score> scores;
    std::vector<Generation> texts;
  };
  Given answer(const Asked& asked, const LanguageModel::Told& told);
  std::string text_of(const Generation& generation, const std::vector<std::string>& stop) const;

  LanguageModel& model_;
  const Tokenizer& tokenizer_;
  EncodingRules rules_;
  RequestEncoder encoder_;
  Comm& world_;
  bool failed_ = false;
};

}  // namespace hlat
