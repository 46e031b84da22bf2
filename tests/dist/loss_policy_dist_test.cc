// Skipped steps and checked saves on several ranks, as a user starts them.
#include <gtest/gtest.h>

#include <set>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/health_record.h"
#include "dist/job.h"
#include "train/state_records.h"

namespace hlat::test {
namespace {

TEST(LossPolicyRanks, AskedStepsAreSkippedAndSavesAreChecked) {
  Job job(4, tiny_run({"--skip", "2,4", "train.steps=6", "parallel.tp=2", "parallel.pp=1", "parallel.dp=2", "parallel.health_every=5",
                       "checkpoint.at_end=true"}));
  const RunResult result = job.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const CheckpointIndex index = read_index(job.dir().path("run/checkpoints/step_6"));
  EXPECT_EQ(saved_loss(index).skipped, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(health_of(index), (HealthRecord{.checked = 6, .passed = 6}));
  std::vector<nlohmann::json> skips = job.events();
  std::erase_if(skips, [](const nlohmann::json& e) { return e["kind"] != "skip"; });
  ASSERT_EQ(skips.size(), 2u);
  std::set<int64_t> rows;
  for (const nlohmann::json& d : skips[0]["documents"]) rows.insert(d["row"].get<int64_t>());
  EXPECT_EQ(static_cast<int64_t>(rows.size()), skips[0]["rows"].get<int64_t>()) << "of both replicas: " << skips[0];
}

}  // namespace
}  // namespace hlat::test
