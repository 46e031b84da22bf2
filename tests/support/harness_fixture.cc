#include "support/harness_fixture.h"

#include <algorithm>
#include <stdexcept>

#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {

std::filesystem::path shared_data() { return source_path("../shared/data"); }

nlohmann::json harness_fixture(const std::string& name) { return nlohmann::json::parse(slurp(source_path("tests/fixtures/eval/") + name)); }

HarnessTask find_harness_task(TaskLibrary& library, const std::string& name) {
  const TaskOptions options{.data = shared_data() / "eval"};
  for (const std::string& own : library.names()) {
    if (!name.starts_with(own)) continue;
    const Task* task = library.find({own})[0];
    const std::vector<std::string> subtasks = task->subtasks(options);
    if (std::find(subtasks.begin(), subtasks.end(), name) != subtasks.end()) return {.task = task, .subtask = name};
  }
  throw std::runtime_error("no task is what the harness calls " + name);
}

std::vector<Example> harness_examples(const HarnessTask& of, int64_t count) {
  return of.task->examples(of.subtask, {.data = shared_data() / "eval", .limit = count});
}

}  // namespace hlat::test
