#include "eval/sample_log.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/json_text.h"
#include "base/rng.h"
#include "data/reader/new_file.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

Json answer_json(const TextRequest& request, const Answer& answer) {
  Json j;
  if (request.kind == AskKind::generate)
    j = {{"text", answer.text}, {"tokens", answer.tokens}};
  else
    j = {{"continuation", request.continuation}, {"logprob", answer.logprob}, {"tokens", answer.tokens}};
  if (request.kind == AskKind::score) j["greedy"] = answer.greedy;
  if (answer.truncated) j["truncated"] = true;
  return j;
}

Answer answer_from(const Json& j) {
  return {.logprob = j.value("logprob", 0.0),
          .greedy = j.value("greedy", false),
          .tokens = j.value("tokens", int64_t{0}),
          .truncated = j.value("truncated", false),
          .text = j.value("text", std::string())};
}

Json sample_json(const TaskInfo& task, const std::string& subtask, const std::string& by, const Sample& sample) {
  const std::vector<TextRequest>& requests = sample.example->requests;
  Json j = {{"task", task.name}, {"subtask", subtask}, {"doc_id", sample.example->id}, {"ask", sample.ask}, {"by", by}};
  j["doc"] = sample.example->record;
  const bool one = std::all_of(requests.begin(), requests.end(), [&](const TextRequest& r) { return r.context == requests[0].context; });
  if (one && !requests.empty()) j["context"] = requests[0].context;
  Json& list = j["requests"] = Json::array();
  for (size_t i = 0; i < requests.size(); ++i) {
    list.push_back(answer_json(requests[i], sample.answers[i]));
    if (!one) list.back()["context"] = requests[i].context;
  }
  j["target"] = sample.judgement.target;
  j["filtered"] = sample.judgement.filtered;
  Json& metrics = j["metrics"] = Json::object();
  for (size_t m = 0; m < task.metrics.size(); ++m) {
    const MetricValue& v = sample.judgement.values[m];
    metrics[task.metrics[m].key()] = v.value;
    if (v.weight != 1) j["weights"][task.metrics[m].key()] = v.weight;
  }
  return j;
}

std::optional<Json> parse(const std::string& line) {
  Json j = Json::parse(line, nullptr, false);
  if (!j.is_object() || !j.contains("requests") || !j["requests"].is_array()) return {};
  return j;
}

}  // namespace

std::string ask_hash(const Example& example) {
  std::string text = json_text(example.record);
  for (const TextRequest& r : example.requests) {
    text += fmt::format("\n{} {} {} {} ", static_cast<int>(r.kind), r.max_tokens, r.context.size(), r.continuation.size());
    text += r.context + r.continuation;
    for (const std::string& stop : r.stop) text += fmt::format(" {} {}", stop.size(), stop);
    const Sampling& s = r.sampling;
    text += fmt::format(" {} {} {} {} {} {}", s.temperature, s.top_k, s.top_p, s.min_p, s.repetition_penalty, s.seed);
  }
  return fmt::format("{:016x}", hash_name(text));
}

SampleLog::SampleLog(const std::filesystem::path& folder, const TaskInfo& task, std::string by)
    : file_(folder / (task.name + ".jsonl")), task_(task), by_(std::move(by)) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail_storage(error.value(), "cannot make the folder " + folder.string());
  cut_to_whole_lines(file_);
  read();
}

void SampleLog::read() {
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) try {
      const std::optional<Json> j = parse(line);
      if (!j) {
        broken_ = true;
        continue;
      }
      Logged logged{.ask = j->at("ask"), .by = j->at("by"), .answers = {}};
      for (const Json& answer : j->at("requests")) logged.answers.push_back(answer_from(answer));
      logged_[{j->at("subtask"), j->at("doc_id")}] = std::move(logged);
    } catch (const Json::exception&) {
      broken_ = true;
    }
}

const std::vector<Answer>* SampleLog::find(const std::string& subtask, const Example& example, const std::string& ask) {
  const auto found = logged_.find({subtask, example.id});
  if (found == logged_.end()) return nullptr;
  const Logged& logged = found->second;
  if (logged.ask == ask && logged.by == by_ && logged.answers.size() == example.requests.size()) return &logged.answers;
  stale_.insert(found->first);
  return nullptr;
}

void SampleLog::remove_stale() {
  if (stale_.empty() && !broken_) return;
  reader::NewFile fresh(file_.string());
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) try {
      const std::optional<Json> j = parse(line);
      if (j && !stale_.contains({j->at("subtask"), j->at("doc_id")})) fresh.write(line + "\n");
    } catch (const Json::exception&) {
      continue;  // no sample
    }
  fresh.publish(file_.string());
  for (const Key& key : stale_) logged_.erase(key);
  stale_.clear();
  broken_ = false;
}

void SampleLog::add(const std::string& subtask, std::span<const Sample> samples) {
  remove_stale();
  std::string lines;
  for (const Sample& sample : samples) lines += json_text(sample_json(task_, subtask, by_, sample)) + "\n";
  OutputFile(file_, OutputFile::Mode::append).write(lines);
}

}  // namespace hlat
