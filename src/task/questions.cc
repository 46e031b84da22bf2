#include "task/questions.h"

#include <algorithm>

#include "base/error.h"

namespace hlat {
namespace {

// Contexts and continuations of the choices, with the delimiter before the latter.
std::vector<TextRequest> scored_choices(const TaskFile& task, const Fields& fields, const std::string& before) {
  std::vector<TextRequest> out;
  if (task.contexts.given()) {
    const std::string continuation = task.target_delimiter + task.continuation.text(fields);
    for (const std::string& context : task.contexts.texts(fields))
      out.push_back({.kind = AskKind::score, .context = before + context, .continuation = continuation});
  } else {
    const std::string context = before + task.prompt.text(fields);
    for (const std::string& choice : task.choices.texts(fields))
      out.push_back({.kind = AskKind::score, .context = context, .continuation = task.target_delimiter + choice});
  }
  if (out.size() < 2) fail("{} choices", out.size());
  for (const TextRequest& r : out)
    if (r.continuation.empty() || (r.continuation == task.target_delimiter)) fail("an empty choice");
  gold_of(task, fields.record, out.size());
  return out;
}

std::vector<TextRequest> samples(const TaskFile& task, const std::string& context, uint64_t seed) {
  const GenerationRules& g = task.generation;
  std::vector<TextRequest> out;
  for (int64_t i = 0; i < g.samples; ++i) {
    TextRequest request = {
        .kind = AskKind::generate, .context = context, .stop = g.stop, .max_tokens = g.max_tokens, .sampling = g.sampling};
    request.sampling.seed = seed + static_cast<uint64_t>(i);
    out.push_back(std::move(request));
  }
  return out;
}

}  // namespace

size_t gold_of(const TaskFile& task, const Json& record, size_t choices) {
  if (task.truths.given()) {
    const std::vector<bool> truths = truths_of(task, record, choices);
    return static_cast<size_t>(std::find(truths.begin(), truths.end(), true) - truths.begin());
  }
  const Json value = task.gold.value({record});
  if (!value.is_number_integer()) fail("gold is {}, not the number of a choice", kind_of(value));
  const auto gold = value.get<int64_t>();
  if (gold < 0 || gold >= static_cast<int64_t>(choices)) fail("gold {} is out of range: there are {} choices, from 0", gold, choices);
  return static_cast<size_t>(gold);
}

std::vector<bool> truths_of(const TaskFile& task, const Json& record, size_t choices) {
  const Json list = task.truths.value({record});
  if (!list.is_array() || list.size() != choices) fail("truths must be a list with 0 or 1 for each of the {} choices", choices);
  std::vector<bool> out;
  bool any = false;
  for (const Json& item : list) {
    if (item != 0 && item != 1) fail("truths must be a list with 0 or 1 for each choice");
    out.push_back(item == 1);
    any = any || out.back();
  }
  if (!any) fail("no choice is true");
  return out;
}

std::vector<std::string> references_of(const TaskFile& task, const Json& record) {
  std::vector<std::string> out = task.target.texts({record});
  if (out.empty()) fail("no right answer");
  return out;
}

std::string fewshot_text(const TaskFile& task, const Fields& fields) {
  const FewShot& f = task.fewshot;
  std::string question, target;
  if (task.info.kind == TaskKind::choice && !(f.prompt.given() && f.target.given())) {
    const std::vector<std::string> options = (task.contexts.given() ? task.contexts : task.choices).texts(fields);
    const std::string& right = options[gold_of(task, fields.record, options.size())];
    question = task.contexts.given() ? right : task.prompt.text(fields);
    target = task.contexts.given() ? task.continuation.text(fields) : right;
  } else {
    question = task.prompt.given() && !f.prompt.given() ? task.prompt.text(fields) : "";
    if (!f.target.given()) target = references_of(task, fields.record)[0];
  }
  if (f.prompt.given()) question = f.prompt.text(fields);
  if (f.target.given()) target = f.target.text(fields);
  return question + task.target_delimiter + target + f.delimiter;
}

std::vector<TextRequest> requests_of(const TaskFile& task, const Fields& fields, const std::string& before, uint64_t sampling_seed) {
  switch (task.info.kind) {
    case TaskKind::choice: return scored_choices(task, fields, before);
    case TaskKind::likelihood:
      return {{.kind = AskKind::score,
               .context = before + task.prompt.text(fields),
               .continuation = task.target_delimiter + references_of(task, fields.record)[0]}};
    case TaskKind::perplexity: {
      TextRequest request = {.kind = AskKind::rolling, .continuation = task.text.text(fields)};
      if (request.continuation.empty()) fail("an empty text");
      return {std::move(request)};
    }
    case TaskKind::generate: references_of(task, fields.record); return samples(task, before + task.prompt.text(fields), sampling_seed);
    case TaskKind::code: {
      const Json output = {{"output", ""}};
      (void)task.program.text({fields.record, &output});  // a field that it lacks is told now and not after hours of generation
      return samples(task, before + task.prompt.text(fields), sampling_seed);
    }
  }
  HLAT_CHECK(false, "kind {}", static_cast<int>(task.info.kind));
}

}  // namespace hlat
