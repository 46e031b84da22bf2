// A run goes on from a TrainState: the first step of a process is not step 1, and batches and learning rate are those of the uninterrupted
// run.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "comm/self_comm.h"
#include "runtime/assembly.h"
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

// A process that trains, with what a checkpoint will carry from one to the next: the state of training and its tensors.
struct Process {
  CpuBackend backend{{.threads = 1, .isa = "auto"}};
  SelfComm world;
  Assembly assembly;
  PlacedModel& model;
  TrainState state;

  explicit Process(const Config& config) : assembly(config, backend, world, 1), model(assembly.build()) { model.executor().init_weights(); }
  Process(const Config& config, const Process& before) : Process(config) {
    const auto &from = before.model.executor().params().buckets(), &to = model.executor().params().buckets();
    for (size_t i = 0; i < to.size(); ++i)
      for (Tensor Bucket::*t : {&Bucket::weight, &Bucket::m, &Bucket::v})
        std::memcpy((to[i].*t).data, (from[i].*t).data, (to[i].*t).bytes());
    state.step = before.state.step;
    state.data = DataState::parse(before.state.data->save());
  }
  TrainSummary train_to_end() {
    int64_t step = 0;
    const Dataset data(model.executor().config(), 1);
    const TrainSetup setup{.plan = assembly.plan(), .peak_flops = 1, .model = model, .data = &data};
    return train(model.executor().config(), setup, state, step);
  }
};

TEST(TrainState, ASignalEndsTheRunAfterTheStepUnderWay) {
  Process process(story_config(6));
  int64_t step = 0, asked = 0;
  const Dataset data(process.model.executor().config(), 1);
  TrainSetup setup{.plan = process.assembly.plan(), .peak_flops = 1, .model = process.model, .data = &data};
  setup.end_signal = [&] { return ++asked == 2 ? 15 : 0; };
  const TrainSummary s = train(process.model.executor().config(), setup, process.state, step);
  EXPECT_EQ(s.ended_by, 15);
  EXPECT_EQ(s.steps, 2);
  EXPECT_EQ(process.state.step, 2);
  EXPECT_EQ(s.loss_steps, 1) << "the loss of the latest step";
}

// The evaluation after the last step is part of the run; one between steps ends it behind its step, which is saved, and not a step later.
TEST(TrainState, ASignalThatCutsAnEvaluationOffEndsTheRunThere) {
  for (const int64_t cut_off : {2, 6}) {
    Process process(story_config(6));
    int64_t step = 0;
    std::vector<int64_t> evaluated;
    const Dataset data(process.model.executor().config(), 1);
    TrainSetup setup{.plan = process.assembly.plan(), .peak_flops = 1, .model = process.model, .data = &data};
    setup.evaluation_due = [](int64_t s) { return s % 2 == 0; };
    setup.evaluate = [&](int64_t s) {
      evaluated.push_back(s);
      return s == cut_off ? StepEvaluation{.cut_off_by = 15} : StepEvaluation{.values = {{"task/acc", 1}}};
    };
    const TrainSummary s = train(process.model.executor().config(), setup, process.state, step);
    EXPECT_EQ(s.ended_by, 15);
    EXPECT_EQ(s.steps, cut_off);
    EXPECT_EQ(evaluated, cut_off == 2 ? std::vector<int64_t>{2} : (std::vector<int64_t>{2, 4, 6}));
  }
}

TEST(TrainState, ARunInTwoPartsIsTheRun) {
  Process whole(story_config(6)), first(story_config(3));
  const TrainSummary once = whole.train_to_end();
  first.train_to_end();
  EXPECT_EQ(first.state.step, 3);
  ASSERT_TRUE(first.state.data);
  EXPECT_EQ(first.state.data->step(), 3);
  Process second(story_config(6), first);
  const TrainSummary twice = second.train_to_end();
  EXPECT_EQ(second.state.step, 6);
  EXPECT_EQ(twice.loss, once.loss);
  EXPECT_EQ(twice.ledger.tokens(), once.ledger.tokens());
  EXPECT_TRUE(second.state.data == whole.state.data);
}

}  // namespace
}  // namespace hlat
