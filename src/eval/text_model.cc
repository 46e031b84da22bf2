#include "eval/text_model.h"

#include "base/error.h"
#include "eval/text_stream.h"

namespace hlat {

TextModel::TextModel(LanguageModel& model, const Tokenizer& tokenizer, const EncodingRules& rules, Comm& world)
    : model_(model), tokenizer_(tokenizer), rules_(rules), encoder_(tokenizer, rules), world_(world) {}

EncodedRequest TextModel::encode(const TextRequest& request) {
  EncodedRequest encoded{.kind = request.kind};
  switch (request.kind) {
    case AskKind::score: {
      EncodedScore score = encoder_.score(request.context, request.continuation);
      encoded.truncated = score.cut > 0 || !score.more.empty();
      encoded.scores = std::move(score.more);
      encoded.scores.insert(encoded.scores.begin(), std::move(score.request));
      break;
    }
    case AskKind::rolling: encoded.scores = encoder_.rolling(request.continuation); break;
    case AskKind::generate: {
      EncodedPrompt prompt = encoder_.prompt(request);
      encoded.truncated = prompt.cut > 0;
      encoded.prompt = std::move(prompt.request);
      encoded.stop = request.stop;
      break;
    }
  }
  return encoded;
}

TextModel::Given TextModel::answer(const Asked& asked, const LanguageModel::Told& told) {
  Given given;
  if (!asked.scores.empty()) given.scores = model_.score(asked.scores, told);
  if (asked.prompts.empty()) return given;
  std::vector<TextStream> streams;
  for (const std::vector<std::string>& stop : asked.stops) streams.emplace_back(tokenizer_, stop);
  const LanguageModel::KeepOn keep = [&](size_t request, const NewToken& token) {
    streams[request].add(token.id);
    return !streams[request].stopped();
  };
  const LanguageModel::Told told_of_texts = told ? [&](size_t answered) { told(asked.scores.size() + answered); } : LanguageModel::Told{};
  given.texts = model_.generate(asked.prompts, keep, told_of_texts);
  return given;
}

std::string TextModel::text_of(const Generation& generation, const std::vector<std::string>& stop) const {
  TextStream stream(tokenizer_, stop);
  std::string text;
  for (const NewToken& token : generation.tokens) text += stream.add(token.id);
  return text + stream.finish();
}

std::vector<Answer> TextModel::ask(std::span<const EncodedRequest* const> requests, const LanguageModel::Told& told) {
  HLAT_CHECK(leads(), "rank {} asks", world_.rank());
  Asked asked;
  for (const EncodedRequest* r : requests) {
    asked.scores.insert(asked.scores.end(), r->scores.begin(), r->scores.end());
    if (r->kind != AskKind::generate) continue;
    asked.prompts.push_back(r->prompt);
    asked.stops.push_back(r->stop);
  }
  failed_ = true;
  send_asked(world_, asked);
  const Given given = answer(asked, told);
  failed_ = false;
  std::vector<Answer> answers;
  size_t score = 0, text = 0;
  for (const EncodedRequest* r : requests) {
    Answer& a = answers.emplace_back(Answer{.greedy = r->kind == AskKind::score, .truncated = r->truncated});
    for (size_t i = 0; i < r->scores.size(); ++i, ++score) {
      a.logprob += given.scores.at(score).logprob;
      a.greedy = a.greedy && given.scores[score].greedy;
      a.tokens += static_cast<int64_t>(r->scores[i].continuation.size());
    }
    if (r->kind != AskKind::generate) continue;
    a.tokens = static_cast<int64_t>(given.texts.at(text).tokens.size());
    a.text = text_of(given.texts[text++], r->stop);
  }
  return answers;
}

void TextModel::finish() {
  if (!failed_) send_asked(world_, {});
}

void TextModel::take_part() {
  while (const std::optional<Asked> asked = receive_asked(world_)) answer(*asked, {});
}

}  // namespace hlat
