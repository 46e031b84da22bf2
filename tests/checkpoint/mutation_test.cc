// A thousand checkpoints that something happened to. Through the reader and through the trainer's own start, each is refused with words,
// replaced by the one before it, or gives the very bits that were saved; none gives others, crashes or waits forever.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "checkpoint/checkpoint_folder.h"
#include "support/checkpoint_content.h"
#include "support/checkpoint_mutations.h"
#include "support/starter.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

constexpr int kMutations = 1000;

// Words that name a file of the checkpoints, or the folder that has them.
bool names_a_file(const std::string& words) { return words.find("step_") != std::string::npos || words.find("work") != std::string::npos; }

class Mutations : public testing::Test {
 protected:
  Mutations() : good_(dir_.path("good")), work_(dir_.path("work")) {
    save_two(good_);
    renew();
    for (const int64_t step : {kOlder, kNewest}) content_[step] = checkpoint_content(checkpoint_path(good_, step));
  }
  void renew() {
    fs::remove_all(work_);
    fs::copy(good_, work_, fs::copy_options::recursive);
  }

  TempDir dir_;
  fs::path good_, work_;
  std::map<int64_t, std::string> content_;
};

TEST_F(Mutations, AThousandAreRefusedReplacedOrExactAndNoneLoadsWrong) {
  Starter starter(work_);
  std::map<int64_t, Starter::Started> saved;
  saved[kNewest] = starter.start();
  ASSERT_EQ(saved[kNewest].step, kNewest);
  fs::remove_all(checkpoint_path(work_, kNewest));
  saved[kOlder] = starter.start();
  ASSERT_EQ(saved[kOlder].step, kOlder);
  ASSERT_NE(saved[kOlder].state, saved[kNewest].state);

  std::map<std::string, int> outcomes;
  const auto& mutations = checkpoint_mutations();
  for (int i = 0; i < kMutations; ++i) {
    const Mutation& mutation = mutations[static_cast<size_t>(i) % mutations.size()];
    const std::string what = fmt::format("mutation {}: {}", i, mutation.name);
    SCOPED_TRACE(what);
    std::mt19937_64 random(static_cast<uint64_t>(i));
    renew();
    mutation.apply(work_, random);
    for (const int64_t step : {kOlder, kNewest}) try {
        EXPECT_EQ(checkpoint_content(checkpoint_path(work_, step)) == content_[step], true) << "step " << step << " gives other bytes";
      } catch (const Error& e) {
        EXPECT_TRUE(names_a_file(e.what())) << e.what();
      }
    try {
      const Starter::Started started = starter.start();
      EXPECT_TRUE(saved.contains(started.step) && started == saved[started.step]) << "step " << started.step << " was loaded wrong";
      ++outcomes[started.step == kNewest ? "the very bits" : "the one before"];
    } catch (const Error& e) {
      EXPECT_TRUE(names_a_file(e.what())) << e.what();
      EXPECT_FALSE(mutation.previous_is_taken) << e.what();
      ++outcomes["refused"];
    }
  }
  for (const auto& [outcome, count] : outcomes) std::cout << fmt::format("{} of {}: {}\n", count, kMutations, outcome);
  EXPECT_GT(outcomes["the one before"], kMutations / 2);
  EXPECT_GT(outcomes["the very bits"], 0);
  EXPECT_GT(outcomes["refused"], 0);
}

}  // namespace
}  // namespace hlat::test
