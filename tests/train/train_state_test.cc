// A run goes on from a TrainState: the first step of a process is not step 1, batches and learning rate are those of the uninterrupted run,
// and what a rank reads depends on its place in the mesh.
#include <gtest/gtest.h>

#include <mutex>

#include "backend/cpu/cpu_backend.h"
#include "comm/self_comm.h"
#include "runtime/assembly.h"
#include "support/text_data.h"
#include "support/thread_comm.h"
#include "train/trainer.h"

namespace hlat {
namespace {

Config story_config(int64_t steps) {
  Config c;
  c.model = {.preset = {}, .layers = 4, .hidden = 16, .heads = 2, .kv_heads = 2, .ffn = 24, .vocab = 512};
  c.train.steps = steps;
  c.train.seq_len = 24;
  c.train.global_batch = 4;
  c.train.micro_batch = 1;
  c.optim.warmup = 2;
  c.optim.schedule_steps = 8;
  c.run.sample_lines = 0;
  c.parallel.dp = 1;
  return c;
}

struct Process {
  CpuBackend backend{{.threads = 1, .isa = "auto"}};
  SelfComm world;
  Assembly assembly;
  PlacedModel& model;

  explicit Process(const Config& config) : assembly(config, backend, world, 1), model(assembly.build()) { model.executor().init_weights(); }
  TrainSummary train_to(Config config, TrainState& state) {
    int64_t step = 0;
    const Dataset data(config, 1);
    return train(config, {.plan = assembly.plan(), .peak_flops = 1, .model = model, .data = &data}, state, step);
  }
};

TEST(TrainState, ARunInTwoPartsIsTheRun) {
  Process whole(story_config(6)), parts(story_config(6));
  TrainState at_end, state;
  const TrainSummary once = whole.train_to(story_config(6), at_end);
  parts.train_to(story_config(3), state);
  EXPECT_EQ(state.step, 3);
  ASSERT_TRUE(state.data);
  EXPECT_EQ(state.data->step(), 3);
  // The position goes through its text, as a checkpoint would carry it.
  state.data = DataState::parse(state.data->save());
  const TrainSummary twice = parts.train_to(story_config(6), state);
  EXPECT_EQ(state.step, 6);
  EXPECT_EQ(twice.loss, once.loss);
  EXPECT_EQ(twice.ledger.tokens(), once.ledger.tokens());
  EXPECT_TRUE(state.data == at_end.data);
}

}  // namespace
}  // namespace hlat
