// Texts to the ids that a model is asked about, by the rules of lm-evaluation-harness:
//   border      white space at the end of a context goes to the continuation; then context + continuation is encoded as one text, and cut
//               after as many ids as the context has alone
//   no context  the prefix token, BOS or else EOS, stands for it
//   BOS         by a switch; a text that spells it gets no second one
//   too long    cut on the left to max_length + 1 ids, the last of which is only a target; a prompt to max_length less its new tokens;
//               a continuation that is longer than that goes on in windows
//   rolling     windows of max_length predicted ids after one id of context, the first after the prefix token; the last window is filled up
//               on its left
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "eval/prefix_encoder.h"
#include "eval/request.h"

namespace hlat {

struct EncodingRules {
  bool bos = false;                   // texts begin with `begin`
  std::optional<int32_t> begin = {};  // BOS
  std::optional<int32_t> end = {};    // EOS; ends a generated text
  int64_t max_length = 0;             // of the model
};

struct EncodedScore {
  ScoreRequest request;
  std::vector<ScoreRequest> more = {};  // windows of a continuation that is longer than the model
  int64_t cut = 0;                      // ids that the context lost
};

struct EncodedPrompt {
  GenerateRequest request;
  int64_t cut = 0;
};

class RequestEncoder {
 public:
  // The tokenizer must outlive this. UsageError where BOS is wanted, or a prefix token needed, and the tokenizer has none.
  RequestEncoder(const Tokenizer& tokenizer, const EncodingRules& rules);

  // UsageError where the continuation is empty.
  EncodedScore score(std::string_view context, std::string_view continuation);
  // Where the model is too short for the new tokens that are asked for, they get half of its length.
  EncodedPrompt prompt(const TextRequest& request);
  std::vector<ScoreRequest> rolling(std::string_view text);  // UsageError where there is no text

 private:
  std::vector<int32_t> with_bos(std::string_view text);
  int32_t prefix() const;
  EncodedScore split(std::vector<int32_t> whole, size_t context) const;

  EncodingRules rules_;
  PrefixEncoder encoder_;
};

}  // namespace hlat
