// A thousand checkpoints that something happened to. Through the reader and through the trainer's own start, each is refused with words,
// replaced by the one before it, or gives the very bits that were saved; none gives others, crashes or waits forever.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/state_pieces.h"
#include "comm/self_comm.h"
#include "runtime/assembly.h"
#include "runtime/load_start.h"
#include "support/checkpoint_content.h"
#include "support/checkpoint_mutations.h"
#include "support/layout_run.h"
#include "support/saved_run.h"
#include "support/temp_dir.h"
#include "train/state_records.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

constexpr int kMutations = 1000;
constexpr int64_t kOlder = 2, kNewest = 4;

Config one_layer() {
  Layout layout{.layers = 1};
  layout.precision = PrecisionKind::mixed;
  Config c = layout.config();
  c.optim.lr = 1e-3;
  return c;
}

// A rank that starts as the trainer's do, as often as it is asked.
class Starter {
 public:
  explicit Starter(const fs::path& parent) : config_(one_layer()), assembly_(config_, backend_, world_, 1), model_(assembly_.build()) {
    config_.checkpoint.dir = parent;
  }

  struct Started {
    int64_t step = 0;
    std::string state, position;
    bool operator==(const Started&) const = default;
  };
  Started start() {
    for (const Bucket& b : params().buckets())
      for (const Tensor& t : {b.weight, b.m, b.v, b.master})
        if (t.defined()) model_.ops().fill(t, 77);
    StartPoint from = find_start(config_, false, world_);
    const TrainState state = load_start(from, config_, model_, world_, 2, [](const std::string&, bool) {});
    Started started{.step = state.step, .state = {}, .position = state.data ? state.data->save() : ""};
    for (const StatePiece& p : state_pieces(params(), 0, 1, Rows::all))
      started.state.append(static_cast<const char*>(p.tensor.data), p.tensor.bytes());
    return started;
  }

 private:
  const ParamStore& params() { return model_.executor().params(); }

  Config config_;
  SelfComm world_;
  CpuBackend backend_{{.threads = 1, .isa = "auto"}};
  Assembly assembly_;
  PlacedModel& model_;
};

// Two checkpoints of one run, each of four files: with tensor parallelism pieces are columns of matrices, with ZeRO-1 parts of them.
void save_two(const fs::path& parent) {
  Config config = one_layer();
  config.parallel.tp = 2, config.parallel.dp = 2, config.parallel.zero1 = true;
  for (const int64_t step : {kOlder, kNewest}) {
    const TrainedPart saved = run_and_save(config, parent, step, 0);
    CheckpointIndex index = read_index(checkpoint_path(parent, step));
    index.records.clear();
    join_records(index, {own_record(saved.begin.data, "")});
    std::ofstream(checkpoint_path(parent, step) / kIndexName, std::ios::binary | std::ios::trunc) << index.save();
  }
}

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
