// Texts that go on after prompts, as a user wants them: as they come, with the blank between prompt and text, and as long as there is room
// where no length was asked for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "eval/encode.h"
#include "eval/language_model.h"

namespace hlat {

inline constexpr int64_t kUsualLength = 256;  // new tokens, where none are asked for and there is room

struct Completion {
  std::string text = {};  // without the stop string
  Generation generation = {};
  int64_t prompt_tokens = 0;  // that were read
  int64_t cut = 0;            // tokens of the prompt, on its left, for which the model was too short
};

class Completer {
 public:
  // The model and the tokenizer must outlive this.
  Completer(LanguageModel& model, const Tokenizer& tokenizer, const EncodingRules& rules)
      : model_(model), tokenizer_(tokenizer), encoder_(tokenizer, rules) {}

  // Gets pieces of a request's text as they come: final, and of whole characters. On ranks that do not generate it themselves they come
  // when all requests are done.
  using OnText = std::function<void(size_t request, const std::string& piece)>;

  // Collective over the model's ranks, with the same requests. max_tokens: less than the model can read at a time; 0: kUsualLength, or what
  // the prompt leaves. Texts end behind a token where `ends`, which must be alike on all ranks, says so.
  std::vector<Completion> complete(const std::vector<TextRequest>& requests, bool logprobs, const OnText& on_text = {},
                                   const LanguageModel::Told& told = {}, const std::function<bool()>& ends = {});

  // UsageError where the tokenizer has no tokens for the prompt.
  void check(const TextRequest& request);

 private:
  EncodedPrompt encode(TextRequest request);

  LanguageModel& model_;
  const Tokenizer& tokenizer_;
  RequestEncoder encoder_;
};

}  // namespace hlat
