// The programs of HumanEval: the 164 canonical solutions pass, mutated ones fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "data/reader/byte_stream.h"
#include "support/paths.h"
#include "support/sandbox_fixture.h"

namespace hlat::test {
namespace {

using sandbox::Outcome;
using sandbox::Sandbox;

struct Problem {
  std::string id, prompt, solution, test, entry_point;
  std::string program(const std::string& answer) const { return prompt + answer + "\n" + test + "\ncheck(" + entry_point + ")\n"; }
};

class HumanEvalPrograms : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    const std::string path = source_path("../shared/data/eval/humaneval/HumanEval.jsonl.gz");
    if (IsSkipped()) return;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no ../shared/data/eval/humaneval";
    const reader::InputFile file(path);
    const auto stream = reader::open_stream(file, reader::Compression::gzip);
    std::string text(8 << 20, '\0');
    size_t size = 0;
    for (size_t n = 0; (n = stream->read(text.data() + size, text.size() - size)) > 0;) size += n;
    std::istringstream lines(text.substr(0, size));
    for (std::string line; std::getline(lines, line);) {
      const auto item = nlohmann::json::parse(line);
      problems_.push_back({item["task_id"], item["prompt"], item["canonical_solution"], item["test"], item["entry_point"]});
    }
    ASSERT_EQ(problems_.size(), 164u);
  }

  // The problems whose program with this answer does not have the outcome.
  template <class Answer>
  std::vector<std::string> others_than(Outcome outcome, const Answer& answer) const {
    const Sandbox box(limits());
    std::vector<std::string> found(problems_.size());
    std::atomic<size_t> next = 0;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < std::clamp(std::thread::hardware_concurrency(), 2u, 8u); ++t)
      threads.emplace_back([&] {
        for (size_t i = next++; i < problems_.size(); i = next++) {
          const sandbox::RunResult result = box.run(problems_[i].program(answer(problems_[i])));
          if (result.outcome != outcome) found[i] = problems_[i].id + ": " + name_of(result.outcome) + " " + result.output;
        }
      });
    for (std::thread& thread : threads) thread.join();
    std::erase(found, "");
    return found;
  }

 private:
  std::vector<Problem> problems_;
};

TEST_F(HumanEvalPrograms, HeavyCanonicalSolutionsPass) {
  EXPECT_EQ(others_than(Outcome::passed, [](const Problem& p) { return p.solution; }), std::vector<std::string>{});
}

// The right value, but within a tuple.
TEST_F(HumanEvalPrograms, HeavySolutionsThatReturnAnotherValueFail) {
  const auto answer = [](const Problem& p) {
    return p.solution + "\nright = " + p.entry_point + "\ndef " + p.entry_point + "(*arguments):\n    return (right(*arguments),)\n";
  };
  EXPECT_EQ(others_than(Outcome::failed, answer), std::vector<std::string>{});
}

TEST_F(HumanEvalPrograms, HeavySolutionsThatReturnNothingFail) {
  EXPECT_EQ(others_than(Outcome::failed, [](const Problem&) { return "    pass\n"; }), std::vector<std::string>{});
}

TEST_F(HumanEvalPrograms, HeavySolutionsThatLeaveBeforeTheirTestsAreUnfinished) {
  EXPECT_EQ(others_than(Outcome::unfinished, [](const Problem&) { return "    import os\n    os._exit(0)\n"; }),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace hlat::test
