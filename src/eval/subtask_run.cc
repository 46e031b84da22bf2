#include "eval/subtask_run.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "checkpoint/for_all.h"

namespace hlat {

namespace {

size_t common_prefix(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// Tokens to be computed: what a context has in common with the one before it is there already.
int64_t work_of(const EncodedRequest& request, std::vector<int32_t>& before) {
  int64_t tokens = 0;
  const auto add = [&](const std::vector<int32_t>& context, size_t more) {
    tokens += static_cast<int64_t>(context.size() - common_prefix(context, before) + more);
    before = context;
  };
  for (const ScoreRequest& r : request.scores) add(r.context, r.continuation.size());
  if (request.kind == AskKind::generate) add(request.prompt.prompt, static_cast<size_t>(request.prompt.max_new));
  return tokens;
}

}  // namespace

std::string SubtaskRun::where(const Example& example) const {
  const bool part = task_.info().has_subtasks;
  return fmt::format("{}record {}", part ? result_.name + ": " : "", example.id);
}

void SubtaskRun::judge(Sample& sample) {
  sample.judgement = of_task(where(*sample.example), [&] { return task_.judge(*sample.example, sample.answers, options_.run_program); });
  const TaskInfo& info = task_.info();
  HLAT_CHECK(sample.judgement.values.size() == info.metrics.size(), "{} values for {} metrics", sample.judgement.values.size(),
             info.metrics.size());
  for (size_t m = 0; m < info.metrics.size(); ++m)
    if (!std::isfinite(sample.judgement.values[m].value))
      throw TaskFailed{fmt::format("{}: {} is {}", where(*sample.example), info.metrics[m].key(), sample.judgement.values[m].value)};
}

void SubtaskRun::keep(const Sample& sample) {
  judgements_[static_cast<size_t>(sample.example - examples_.data())] = sample.judgement;
  for (size_t i = 0; i < sample.answers.size(); ++i) {
    const TextRequest& request = sample.example->requests[i];
    if (sample.answers[i].truncated && result_.truncated++ == 0) result_.first_truncated = sample.example->id;
    result_.shortened += request.kind == AskKind::generate && request.max_tokens >= model_.max_length() ? 1 : 0;
  }
  result_.lacking_shots += sample.example->lacking_shots > 0 ? 1 : 0;
  ++result_.examples;
}

// Programs take time: several are run at once.
void SubtaskRun::judge_all(std::vector<Sample>& samples) {
  for_all(samples.size(), task_.info().kind == TaskKind::code ? options_.judge_threads : 1, [&](size_t i) { judge(samples[i]); });
}

// Numbers of the examples that no log has.
std::vector<size_t> SubtaskRun::take_logged(SampleLog* log, const std::function<bool()>& stop) {
  constexpr size_t kJudgedAtOnce = 64;                    // between two looks at whether to stop
  const bool slow = task_.info().kind == TaskKind::code;  // programs are run again; all else is judged in no time
  std::vector<size_t> open;
  std::vector<Sample> logged;
  const auto take = [&] {
    if (slow && stop && stop()) throw Stopped{.examples = result_.examples};
    judge_all(logged);
    for (const Sample& sample : logged) keep(sample);
    result_.reused += static_cast<int64_t>(logged.size());
    logged.clear();
  };
  for (size_t i = 0; i < examples_.size(); ++i) {
    const auto ask = asks_.emplace_back(ask_hash(examples_[i]));
    const std::vector<Answer>* answers = log != nullptr ? log->find(result_.name, examples_[i], ask) : nullptr;
    if (answers == nullptr) {
      open.push_back(i);
      continue;
    }
    logged.push_back({.example = &examples_[i], .ask = ask, .answers = *answers, .judgement = {}});
    if (logged.size() == kJudgedAtOnce) take();
  }
  if (!logged.empty()) take();
  return open;
}

SubtaskRun::Chunk SubtaskRun::next_chunk(const std::vector<size_t>& open, size_t& at) {
  Chunk chunk;
  std::vector<int32_t> before;
  for (int64_t tokens = 0; at < open.size() && tokens < options_.chunk_tokens; ++at) {
    const Example& example = examples_[open[at]];
    chunk.samples.push_back({.example = &example, .ask = asks_[open[at]], .answers = {}, .judgement = {}});
    std::vector<EncodedRequest>& requests = chunk.requests.emplace_back();
    for (const TextRequest& request : example.requests) {
      requests.push_back(of_task(where(example), [&] { return model_.encode(request); }));
      tokens += work_of(requests.back(), before);
    }
  }
  return chunk;
}

void SubtaskRun::ask(Chunk& chunk, const std::function<void(int64_t)>& progress) {
  std::vector<const EncodedRequest*> all;
  for (const auto& requests : chunk.requests)
    for (const EncodedRequest& r : requests) all.push_back(&r);
  const int64_t before = result_.examples;
  const auto examples = static_cast<int64_t>(chunk.samples.size());
  const auto told = [&](size_t answered) {
    if (progress && !all.empty()) progress(before + examples * static_cast<int64_t>(answered) / static_cast<int64_t>(all.size()));
  };
  std::vector<Answer> answers = model_.ask(all, told);
  auto next = answers.begin();
  for (size_t i = 0; i < chunk.samples.size(); ++i) {
    Sample& sample = chunk.samples[i];
    sample.answers.assign(std::make_move_iterator(next), std::make_move_iterator(next + static_cast<int64_t>(chunk.requests[i].size())));
    next += static_cast<int64_t>(chunk.requests[i].size());
    for (const Answer& a : sample.answers)
      if (!std::isfinite(a.logprob)) throw TaskFailed{fmt::format("{}: the log-likelihood is {}", where(*sample.example), a.logprob)};
  }
}

SubtaskResult SubtaskRun::run(SampleLog* log, const std::function<void(int64_t)>& progress, const std::function<bool()>& stop) {
  try {
    examples_ = of_task("", [&] { return task_.examples(result_.name, options_.tasks); });
    if (examples_.empty()) throw TaskFailed{result_.name + ": its data has no examples"};
    const bool all = options_.tasks.limit == 0;
    result_.available =
        all ? static_cast<int64_t>(examples_.size()) : of_task("", [&] { return task_.count(result_.name, options_.tasks); });
    judgements_.resize(examples_.size());
    const std::vector<size_t> open = take_logged(log, stop);
    for (size_t at = 0; at < open.size();) {
      if (stop && stop()) throw Stopped{.examples = result_.examples};
      Chunk chunk = next_chunk(open, at);
      ask(chunk, progress);
      judge_all(chunk.samples);
      if (log != nullptr) log->add(result_.name, chunk.samples);
      for (const Sample& sample : chunk.samples) keep(sample);
      if (progress) progress(result_.examples);
    }
    for (size_t m = 0; m < task_.info().metrics.size(); ++m) {
      std::vector<MetricValue> values;
      for (const Judgement& j : judgements_) values.push_back(j.values[m]);
      result_.metrics.push_back(aggregate(task_.info().metrics[m].aggregation, values));
    }
  } catch (const TaskFailed& failed) {
    result_.error = failed.words;
  }
  return std::move(result_);
}

}  // namespace hlat
