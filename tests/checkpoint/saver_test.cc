// What a save puts on the disk: the state at begin(), each element once, whatever the layout and however the state changes meanwhile.
#include "checkpoint/saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "backend/null/null_backend.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/staging.h"
#include "comm/host_exchange.h"
#include "support/fake_device.h"
#include "support/known_state.h"
#include "support/layout_run.h"
#include "support/one_rank.h"
#include "support/temp_dir.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

constexpr size_t kTiny = 1, kAmple = size_t{64} << 20;

// Saves version 1 and changes each bucket to version 2 the moment it may be changed. The folder of the checkpoint.
std::filesystem::path save_and_change(Saver& saver, const ParamStore& params, Device& device, int shard, int shards, SaveRequest request) {
  put_known(params, device, shard, shards, 1);
  saver.begin(std::move(request));
  for (int b = 0; b < static_cast<int>(params.buckets().size()); ++b) {
    saver.before_update(b);
    put_known(params, device, shard, shards, 2, b);
  }
  EXPECT_TRUE(saver.wait(60));
  const std::optional<SaveOutcome> outcome = saver.take_outcome();
  if (!outcome) {
    ADD_FAILURE() << "no outcome";
    return {};
  }
  EXPECT_EQ(outcome->problem, "");
  EXPECT_FALSE(saver.take_outcome()) << "told once";
  return outcome->folder;
}

std::vector<SavedTensor> tensors_of(const Config& given, CheckpointContent content) {
  const Config config = with_one_rank(given);
  const Mesh mesh = one_rank(config);
  NullBackend backend(nullptr);
  PlacedModel model(config, precision_of(config), mesh, backend, nullptr, ParamUse::training);
  return tensors_of(model.executor().params(), content);
}

struct SavedLayout {
  Layout layout;
  CheckpointContent content = CheckpointContent::training;
  size_t staging = kAmple;
};

void PrintTo(const SavedLayout& s, std::ostream* out) { *out << s.layout.name(); }

class SaverLayouts : public testing::TestWithParam<SavedLayout> {};

TEST_P(SaverLayouts, SavesEveryElementOnceAsItWasWhenTheSaveBegan) {
  const Config config = GetParam().layout.config();
  const test::TempDir dir;
  std::atomic<size_t> bytes = 0, buckets = 0;
  run_thread_ranks(mesh_shape(config.parallel).ranks(), [&](Comm& world) {
    CpuBackend backend({.threads = 1, .isa = "auto"});
    Assembly assembly(config, backend, world, world.size());
    PlacedModel& model = assembly.build();
    const ParamStore& params = model.executor().params();
    const int shard = model.mesh().coord().dp, shards = model.mesh().shape().dp;
    bytes += Saver::state_bytes(params, shard, shards);
    buckets = params.buckets().size();
    // With tiny staging the disk is slow: whoever changes a bucket before it is copied is found out.
    SaveOptions options{.staging_bytes = GetParam().staging};
    if (GetParam().staging == kTiny) options.before_write = [](uint64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
    Saver saver(params, backend.device(), shard, shards, world.size() > 1 ? world.split(0, world.rank(), "save") : nullptr, options);
    save_and_change(saver, params, backend.device(), shard, shards, save_request(dir.path("c"), 5, GetParam().content));
  });
  EXPECT_EQ(checkpoint_steps(dir.path("c")), (std::vector<int64_t>{5}));
  expect_known(checkpoint_path(dir.path("c"), 5), tensors_of(config, GetParam().content), 1);
  const CheckpointIndex index = read_index(checkpoint_path(dir.path("c"), 5));
  EXPECT_EQ(index.content, GetParam().content);
  EXPECT_EQ(index.files.front().name, "rank_00000.safetensors");
  if (GetParam().staging == kTiny) {
    EXPECT_GT(buckets, 1u) << "or nothing waits for a bucket";
  }
  // state_bytes is what a rank saves: the plan counts with it.
  uint64_t expected = 0;
  for (const SavedTensor& t : tensors_of(config, CheckpointContent::training))
    expected += static_cast<uint64_t>(t.shape.numel()) * size_of(t.dtype);
  EXPECT_EQ(bytes, expected);
}

constexpr auto kWeights = CheckpointContent::weights;
constexpr auto kTraining = CheckpointContent::training;

INSTANTIATE_TEST_SUITE_P(Layouts, SaverLayouts,
                         testing::Values(SavedLayout{{.ffn = 1024}}, SavedLayout{{.ffn = 1024}, kTraining, kTiny},
                                         SavedLayout{{.ffn = 1024, .precision = PrecisionKind::mixed_sr}, kTraining, kTiny},
                                         SavedLayout{{.tp = 2, .sp = true}},                       //
                                         SavedLayout{{.tp = 4}}, SavedLayout{{.tp = 8, .kv = 2}},  //
                                         SavedLayout{{.dp = 2}}, SavedLayout{{.dp = 4, .zero1 = true, .ffn = 1024}, kTraining, kTiny},
                                         SavedLayout{{.pp = 2, .tied = true}},                                               //
                                         SavedLayout{{.pp = 3, .cuts = {1, 2}}},                                             //
                                         SavedLayout{{.tp = 2, .pp = 2, .dp = 2, .zero1 = true, .kv = 1, .tied = true}},     //
                                         SavedLayout{{.tp = 2, .dp = 2, .zero1 = true, .precision = PrecisionKind::mixed}},  //
                                         SavedLayout{{.dp = 8, .zero1 = true, .precision = PrecisionKind::bf16_sr}},
                                         SavedLayout{{.tp = 2, .dp = 2, .ffn = 1024}, kWeights, kTiny},
                                         SavedLayout{{.pp = 2, .precision = PrecisionKind::mixed}, kWeights}));

// Of a hand-made store in a device's memory.
std::vector<ParamSpec> some_specs() {
  return {{.name = "a", .slice = Slice::whole({100}), .group = 0},
          {.name = "b", .slice = Slice::whole({700, 500}), .group = 1},
          {.name = "c", .slice = Slice::whole({300, 1000}), .group = 2}};
}

struct DeviceStore {
  DeviceStore(const Precision& precision, std::vector<ParamSpec> specs, int shard, int shards)
      : memory(device, planned(precision, specs, shard, shards)),
        params(specs, precision, memory.memory(), {.shards = shards, .shard = shard, .bucket_bytes = 1}, ParamUse::training) {}
  static MemoryPlan planned(const Precision& precision, const std::vector<ParamSpec>& specs, int shard, int shards) {
    Memory measured;
    const ParamStore store(specs, precision, measured, {.shards = shards, .shard = shard, .bucket_bytes = 1}, ParamUse::training);
    return measured.high_water();
  }
  test::FakeDevice device;
  PlannedMemory memory;
  ParamStore params;
};

TEST(SaverOnADevice, CopiesBehindItsWorkAndBeforeTheUpdate) {
  for (const auto content : {kTraining, kWeights})
    for (const PrecisionKind precision : {PrecisionKind::fp32, PrecisionKind::mixed})
      for (const size_t staging : {kTiny, kAmple}) {
        const test::TempDir dir;
        run_thread_ranks(2, [&](Comm& world) {
          DeviceStore store(precision_of(precision), some_specs(), world.rank(), 2);
          Saver saver(store.params, store.device, world.rank(), 2, world.split(0, world.rank(), "save"), {.staging_bytes = staging});
          const auto folder = save_and_change(saver, store.params, store.device, world.rank(), 2, save_request(dir.path(), 3, content));
          world.barrier();
          if (world.rank() == 0) expect_known(folder, tensors_of(store.params, content), 1);
        });
      }
}

TEST(Saver, ARankWithNothingToSaveWritesNoFile) {
  const test::TempDir dir;
  run_thread_ranks(3, [&](Comm& world) {
    DeviceStore store(precision_of(PrecisionKind::fp32), {{.name = "a", .slice = Slice::whole({100}), .group = 0}}, world.rank(), 3);
    Saver saver(store.params, store.device, world.rank(), 3, world.split(0, world.rank(), "save"), {});
    const auto folder = save_and_change(saver, store.params, store.device, world.rank(), 3, save_request(dir.path(), 1));
    world.barrier();
    if (world.rank() == 0) expect_known(folder, tensors_of(store.params, kTraining), 1);
  });
  EXPECT_EQ(read_index(checkpoint_path(dir.path(), 1)).files.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_path(dir.path(), 1) / "rank_00001.safetensors"));
}

TEST(Saver, RanksOwnRecordsAreJoinedOnRankZeroAndMeasuresAreTold) {
  const test::TempDir dir;
  run_thread_ranks(3, [&](Comm& world) {
    DeviceStore store(precision_of(PrecisionKind::fp32), some_specs(), world.rank(), 3);
    Saver saver(store.params, store.device, world.rank(), 3, world.split(0, world.rank(), "save"),
                {.staging_bytes = kTiny, .before_write = [](uint64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }});
    SaveRequest request = save_request(dir.path(), 1);
    request.own_record = world.rank() == 1 ? "" : fmt::format("{}", world.rank() * 10);
    request.join_records = [&](CheckpointIndex& index, std::vector<std::string> own) {
      EXPECT_EQ(world.rank(), 0);
      EXPECT_EQ(own, (std::vector<std::string>{"0", "", "20"}));
      index.records.push_back({.name = "joined", .version = 2, .json = "[0,20]"});
    };
    saver.begin(request);
    EXPECT_TRUE(saver.busy());
    for (int b = 0; b < static_cast<int>(store.params.buckets().size()); ++b) saver.before_update(b);
    ASSERT_TRUE(saver.wait(60));
    const SaveOutcome outcome = saver.take_outcome().value();
    EXPECT_EQ(outcome.problem, "");
    EXPECT_EQ(outcome.step, 1);
    EXPECT_EQ(outcome.bytes, (100u + 350000 + 300000) * 12) << "of all ranks";
    EXPECT_GT(outcome.copy_s, 0);
    EXPECT_GE(outcome.seconds, outcome.copy_s);
    EXPECT_GT(outcome.update_wait_s, 0);
  });
  const CheckpointIndex index = read_index(checkpoint_path(dir.path(), 1));
  ASSERT_NE(index.find_record("joined"), nullptr);
  EXPECT_EQ(index.find_record("joined")->json, "[0,20]");
}

TEST(Staging, IsAsLargeAsTheStateUnlessTheKeyOrTheHostSaysLess) {
  constexpr size_t mib = size_t{1} << 20, gib = size_t{1} << 30;
  CheckpointConfig c;
  const size_t all = staging_bytes(c, 10 * gib + 12345, 1e15);
  EXPECT_GE(all, 10 * gib + 12345);
  EXPECT_LT(all, 10 * gib + 4 * mib);
  EXPECT_EQ(staging_bytes(c, 10 * gib, 8.0 * gib), 4 * gib) << "half of what there is";
  EXPECT_EQ(staging_bytes(c, 10 * gib, 0), 64 * mib);
  EXPECT_EQ(staging_bytes(c, 10 * gib, -1e9), 64 * mib);
  c.staging_mb = 256;
  EXPECT_EQ(staging_bytes(c, 10 * gib, 1), 256 * mib) << "as the key says";
  EXPECT_EQ(staging_bytes(c, 32 * mib, 1), 32 * mib) << "but no more than the state";
  c.every = 0;
  c.at_end = false;
  EXPECT_EQ(staging_bytes(c, gib, 1e15), 0u) << "nothing is ever saved";
  c.weights_every_tokens = 1;
  EXPECT_GT(staging_bytes(c, gib, 1e15), 0u);
  for (const size_t bytes : {size_t{0}, size_t{1}, 3 * mib, 33 * mib, gib - 1, 7 * gib + 123}) {
    EXPECT_GE(Staging::rounded(bytes), bytes);
    EXPECT_EQ(Staging::rounded(Staging::rounded(bytes)), Staging::rounded(bytes));
  }
}

}  // namespace
}  // namespace hlat
