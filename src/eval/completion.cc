#include "eval/completion.h"

#include <algorithm>

#include "base/error.h"
#include "eval/text_stream.h"

namespace hlat {

namespace {

// A text as it comes.
struct Growing {
  TextStream stream;
  std::string text = {};
  size_t tokens = 0;
};

}  // namespace

EncodedPrompt Completer::encode(TextRequest request) {
  HLAT_CHECK(request.max_tokens < model_.max_length(), "{} new tokens, the model reads {}", request.max_tokens, model_.max_length());
  request.kind = AskKind::generate;
  if (request.max_tokens > 0) return encoder_.prompt(request);
  request.max_tokens = 1;
  EncodedPrompt prompt = encoder_.prompt(request);
  if (prompt.cut == 0) {
    prompt.request.max_new = std::min(kUsualLength, model_.max_length() - static_cast<int64_t>(prompt.request.prompt.size()));
    return prompt;
  }
  request.max_tokens = std::min(kUsualLength, model_.max_length() / 2);
  return encoder_.prompt(request);
}

void Completer::check(const TextRequest& request) try { encode(request); } catch (const Error& e) {
  throw UsageError(e.what());
}

std::vector<Completion> Completer::complete(const std::vector<TextRequest>& requests, bool logprobs, const OnText& on_text,
                                            const LanguageModel::Told& told, const std::function<bool()>& ends) {
  std::vector<Completion> results(requests.size());
  std::vector<GenerateRequest> asked;
  std::vector<Growing> texts;
  for (size_t i = 0; i < requests.size(); ++i) {
    EncodedPrompt prompt = encode(requests[i]);
    prompt.request.logprobs = logprobs;
    results[i].cut = prompt.cut;
    results[i].prompt_tokens = static_cast<int64_t>(prompt.request.prompt.size());
    texts.push_back({.stream = TextStream(tokenizer_, requests[i].stop, prompt.request.prompt)});
    asked.push_back(std::move(prompt.request));
  }
  const auto grow = [&](size_t i, const std::string& piece) {
    texts[i].text += piece;
    if (on_text && !piece.empty()) on_text(i, piece);
  };
  const auto add = [&](size_t i, const NewToken& token) {
    ++texts[i].tokens;
    grow(i, texts[i].stream.add(token.id));
    return !texts[i].stream.stopped() && !(ends && ends());
  };
  std::vector<Generation> generations = model_.generate(asked, add, told);
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::vector<NewToken>& tokens = generations[i].tokens;
    while (texts[i].tokens < tokens.size()) add(i, tokens[texts[i].tokens]);
    grow(i, texts[i].stream.finish());
    results[i].text = std::move(texts[i].text);
    results[i].generation = std::move(generations[i]);
  }
  return results;
}

}  // namespace hlat
