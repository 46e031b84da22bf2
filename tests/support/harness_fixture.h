// What lm-evaluation-harness said (tests/fixtures/eval, made by tools/harness_fixtures.py), and our tasks of the same names over the same
// data, which is not part of the tree: tests skip without it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "task/library.h"

namespace hlat::test {

std::filesystem::path shared_data();
inline constexpr const char* kNoSharedData = "without ../shared/data";

nlohmann::json harness_fixture(const std::string& name);  // of a file of tests/fixtures/eval

// A task of the harness as one of ours: the harness names each subtask like a task.
struct HarnessTask {
  const Task* task = nullptr;
  std::string subtask;
};
HarnessTask find_harness_task(TaskLibrary& library, const std::string& name);

// The first examples of a task, over the shared data.
std::vector<Example> harness_examples(const HarnessTask& of, int64_t count);

}  // namespace hlat::test
