#include "task/task.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "task/fewshot.h"
#include "task/judge.h"
#include "task/questions.h"
#include "task/read_records.h"
#include "task/task_file.h"

namespace hlat {
namespace {

int64_t shots_of(const TaskFile& task, const TaskOptions& options) { return options.shots.value_or(task.info.shots); }

// What * stands for in the file names of a subtask.
std::string part_of(const TaskFile& task, const std::string& subtask) {
  const std::string& name = task.info.name;
  if (!task.info.has_subtasks) {
    HLAT_CHECK(subtask == name, "subtask {} of {}", subtask, name);
    return "";
  }
  HLAT_CHECK(subtask.starts_with(name + "_"), "subtask {} of {}", subtask, name);
  return subtask.substr(name.size() + 1);
}

std::vector<std::string> parts_of(const TaskFile& task, const TaskOptions& options) {
  return task.subtasks.empty() ? subtasks_of(task.data.files, options.data) : task.subtasks;
}

std::string file_of(const TaskFile& task, const std::vector<std::string>& alternatives, const TaskOptions& options,
                    const std::string& part) {
  const auto found = find_file(alternatives, options.data, part);
  if (!found) fail<UsageError>("task {}: {} is not in {}", task.info.name, alternatives[0], options.data.string());
  return *found;
}

std::vector<TaskRecord> records_of(const TaskFile& task, const DataSource& source, const TaskOptions& options, const std::string& part,
                                   Problems& problems) {
  std::vector<TaskRecord> out;
  for (const Json& example : source.examples)
    out.push_back({.id = static_cast<int64_t>(out.size()),
                   .fields = example,
                   .where = fmt::format("{} example {}", task.info.origin, out.size() + 1)});
  if (!source.examples.empty()) return out;
  const std::string labels = source.labels.empty() ? "" : file_of(task, source.labels, options, part);
  return read_records(source, file_of(task, source.files, options, part), labels, problems);
}

// What all records of a subtask share.
Json shared_fields(const TaskFile& task, const TaskOptions& options, const std::string& part, Problems& problems) {
  Json out = {{"subtask", part}};
  if (task.shared.files.empty()) return out;
  out.update(read_fields(*task.shared.pattern, file_of(task, task.shared.files, options, part), problems));
  return out;
}

FewShotTexts fewshot_of(const TaskFile& task, const TaskOptions& options, const std::string& part, const std::vector<TaskRecord>& data,
                        const Json& shared, Problems& problems) {
  const int64_t shots = shots_of(task, options);
  const DataSource& source = task.fewshot.source;
  if (shots > 0 && task.info.kind == TaskKind::perplexity) fail<UsageError>("task {} has no few-shot examples", task.info.name);
  std::vector<TaskRecord> records;
  const bool from_data =
      task.fewshot.has_questions || !source.given() ||
      (source.examples.empty() && shots > 0 && file_of(task, source.files, options, part) == file_of(task, task.data.files, options, part));
  if (shots > 0) records = source.given() ? records_of(task, source, options, part, problems) : data;
  const size_t needed = FewShotTexts::records_needed(shots, from_data);
  const bool enough = needed <= records.size();
  if (!enough) {
    const DataSource& read = source.given() ? source : task.data;
    const std::string where = read.files.empty() ? task.info.origin : file_of(task, read.files, options, part);
    problems.add(where, fmt::format("{} shots need {} few-shot examples, and there are {}", shots, needed, records.size()));
  }
  return {std::move(records),   enough ? shots : 0,
          task.fewshot.first,   from_data,
          options.fewshot_seed, [&task, &shared](const TaskRecord& r) { return fewshot_text(task, {r.fields, &shared}); }};
}

void add_missing(std::vector<std::string>& out, const std::vector<std::string>& alternatives, const TaskOptions& options,
                 const std::string& part) {
  if (alternatives.empty() || find_file(alternatives, options.data, part)) return;
  std::string name = alternatives[0];
  const size_t star = name.find('*');
  if (star != std::string::npos && !part.empty()) name.replace(star, 1, part);
  if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
}

}  // namespace

Task::Task(std::unique_ptr<const TaskFile> file) : file_(std::move(file)) {}
Task::~Task() = default;
Task::Task(Task&&) noexcept = default;
Task& Task::operator=(Task&&) noexcept = default;

const TaskInfo& Task::info() const { return file_->info; }

std::vector<std::string> Task::missing(const TaskOptions& options) const {
  const std::vector<std::string> parts = parts_of(*file_, options);
  std::vector<std::string> out;
  if (parts.empty()) add_missing(out, file_->data.files, options, "");
  for (const std::string& part : parts) {
    add_missing(out, file_->data.files, options, part);
    add_missing(out, file_->data.labels, options, part);
    add_missing(out, file_->shared.files, options, part);
    if (shots_of(*file_, options) == 0) continue;
    add_missing(out, file_->fewshot.source.files, options, part);
    add_missing(out, file_->fewshot.source.labels, options, part);
  }
  return out;
}

std::vector<std::string> Task::files(const std::string& subtask, const TaskOptions& options) const {
  const std::string part = part_of(*file_, subtask);
  std::vector<std::string> out;
  const auto add = [&](const std::vector<std::string>& alternatives) {
    const std::optional<std::string> found = find_file(alternatives, options.data, part);
    if (found && std::find(out.begin(), out.end(), *found) == out.end()) out.push_back(*found);
  };
  add(file_->data.files);
  if (shots_of(*file_, options) > 0) add(file_->fewshot.source.files);
  return out;
}

std::vector<std::string> Task::subtasks(const TaskOptions& options) const {
  const std::vector<std::string> absent = missing(options);
  if (!absent.empty())
    fail<UsageError>("task {}: {} is not in {}{}", info().name, absent[0], options.data.string(),
                     absent.size() > 1 ? fmt::format(", and {} more files are not", absent.size() - 1) : "");
  std::vector<std::string> out;
  for (const std::string& part : parts_of(*file_, options)) out.push_back(info().has_subtasks ? info().name + "_" + part : info().name);
  return out;
}

int64_t Task::count(const std::string& subtask, const TaskOptions& options) const {
  Problems problems;
  const auto records = records_of(*file_, file_->data, options, part_of(*file_, subtask), problems);
  problems.refuse(fmt::format("task {}: broken examples", info().name));
  return static_cast<int64_t>(records.size());
}

std::vector<Example> Task::examples(const std::string& subtask, const TaskOptions& options) const {
  const TaskFile& task = *file_;
  const std::string part = part_of(task, subtask);
  const std::string title = fmt::format("task {}: broken examples", subtask);
  Problems problems;
  const std::vector<TaskRecord> records = records_of(task, task.data, options, part, problems);
  const size_t broken = problems.count();
  const Json shared = shared_fields(task, options, part, problems);
  if (problems.count() > broken) problems.refuse(title);  // else every record lacks these fields
  FewShotTexts fewshot = fewshot_of(task, options, part, records, shared, problems);

  const Json nothing = Json::object();
  const std::string description = task.description.text({nothing, &shared});
  std::vector<Example> out;
  for (const TaskRecord& r : records) {
    if (options.limit > 0 && static_cast<int64_t>(out.size()) == options.limit) break;
    std::string before = description;
    const uint64_t seed = hash_name(fmt::format("{}/{}/{}", subtask, r.id, options.sampling_seed));
    out.push_back({.id = r.id, .record = r.fields});
    try {
      before += fewshot.next(r.fields);
    } catch (const UsageError& e) {
      problems.add_once(e.what());
    }
    out.back().lacking_shots = fewshot.left_out();
    try {
      out.back().requests = requests_of(task, {r.fields, &shared}, before, seed);
    } catch (const Error& e) {
      problems.add(r.where, e.what());
    }
  }
  problems.refuse(title);
  return out;
}

Judgement Task::judge(const Example& example, std::span<const Answer> answers, const ProgramRunner& run) const {
  return judge_example(*file_, example, answers, run);
}

}  // namespace hlat
