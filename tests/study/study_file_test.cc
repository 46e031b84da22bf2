// Study files: what they mean, and every kind of mistake with its line.
#include "study/study_file.h"

#include <gtest/gtest.h>

#include "study/grid.h"
#include "study/results.h"
#include "support/message_of.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

class StudyFile : public testing::Test {
 protected:
  Study read(const std::string& text) const { return read_study(dir_.write("s.yaml", text), collectable_columns()); }
  std::string refusal(const std::string& text) const {
    return message_of([&] { read(text); });
  }
  std::string plan_refusal(const std::string& text, const std::vector<std::string>& words = {}) const {
    return message_of([&] { plan_runs(read(text), words, "out"); });
  }
  std::string at(int line) const { return dir_.path("s.yaml") + ":" + std::to_string(line) + ": "; }
  TempDir dir_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr const char* kGrid = R"(name: two
base: {model: {layers: 1}, train: {steps: 5}}
set: {optim.lr: 1e-3}
axes:
  precision:
    - {name: full, set: {train.precision: fp32}}
    - {name: sr, set: {train.precision: bf16_sr}, ranks: 2}
  run.seed: [1, 2, 3]
baseline: full
)";

TEST_F(StudyFile, SaysWhatIsRun) {
  const Study study = read(kGrid);
  EXPECT_EQ(study.name, "two");
  ASSERT_EQ(study.axes.size(), 2u);
  EXPECT_FALSE(study.axes[0].seeds);
  EXPECT_TRUE(study.axes[1].seeds);
  EXPECT_EQ(study.axes[1].points[1].name, "seed=2");
  const std::vector<PlannedRun> runs = plan_runs(study, {"optim.lr=2e-3"}, "out");
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_EQ(runs[0].run.name, "full+seed=1");
  EXPECT_EQ(runs[1].run.name, "sr+seed=1") << "all points with one seed come before the next seed";
  EXPECT_EQ(runs[2].run.row, "full");
  EXPECT_EQ(runs[1].ranks, 2);
  EXPECT_EQ(runs[0].ranks, 1);
  EXPECT_EQ(runs[5].config.run.seed, 3u);
  EXPECT_EQ(runs[5].config.train.precision, PrecisionKind::bf16_sr);
  EXPECT_EQ(runs[5].config.model.layers, 1);
  EXPECT_EQ(runs[5].config.optim.lr, 2e-3) << "the command line wins";
  EXPECT_EQ(runs[5].config.run.dir, "out/sr+seed=3");
  EXPECT_EQ(baseline_row(study, runs[1].run), "full");
}

TEST_F(StudyFile, ABaseFileIsFoundFromTheStudy) {
  dir_.write("base.yaml", "train: {steps: 7}\n");
  const std::vector<PlannedRun> runs = plan_runs(read("base: base.yaml\n"), {}, "out");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].config.train.steps, 7);
  EXPECT_EQ(runs[0].run.name, "base");
  EXPECT_TRUE(has(refusal("base: bass.yaml\n"), at(1) + "base = bass.yaml: there is no file")) << refusal("base: bass.yaml\n");
}

TEST_F(StudyFile, LaterLengthsTakeThePlaceOfEarlierOnes) {
  dir_.write("base.yaml", "train: {steps: 7, seq_len: 128, global_batch: 8}\n");
  const Study study = read("base: base.yaml\nset: {train.tokens: 10240}\n");
  EXPECT_EQ(plan_runs(study, {}, "out")[0].config.train.steps, 10);
  EXPECT_EQ(plan_runs(study, {"train.steps=3"}, "out")[0].config.train.steps, 3);
}

TEST_F(StudyFile, ListsOfItemsCanBeWrittenOut) {
  const Study study = read("set:\n  data.tokenizer: t.json\n  data.sources: [{path: a.txt, weight: 2}, {path: b.txt}]\n");
  const Config config = plan_runs(study, {"data.sources[1].path=c.txt"}, "out")[0].config;
  ASSERT_EQ(config.data.sources.size(), 2u);
  EXPECT_EQ(config.data.sources[0].weight, 2);
  EXPECT_EQ(config.data.sources[1].path, "c.txt");
}

TEST_F(StudyFile, ValuesAreMapsAndListsAsInAConfig) {
  dir_.write("base.yaml", "data: {tokenizer: t.json, sources: [{name: web, path: a.txt}, {name: code, path: b.txt}]}\n");
  const auto stages = [](const std::string& source) { return "data.stages: [{from_step: 5, weights: {" + source + ": 1, code: 3}}]"; };
  for (const std::string& text :
       {"base: base.yaml\nset: {" + stages("web") + "}\n", "base: base.yaml\naxes:\n  a:\n    - {name: x, set: {" + stages("web") + "}}\n",
        std::string("base:\n  data:\n    tokenizer: t.json\n    sources: [{name: web, path: a.txt}, {name: code, path: b.txt}]\n"
                    "    stages: [{from_step: 5, weights: {web: 1, code: 3}}]\n")}) {
    const Config config = plan_runs(read(text), {}, "out")[0].config;
    ASSERT_EQ(config.data.stages.size(), 1u) << text;
    EXPECT_EQ(config.data.stages[0].weights, (Weights{{"web", 1.0}, {"code", 3.0}})) << text;
  }
  EXPECT_TRUE(has(plan_refusal("base: base.yaml\nset: {" + stages("wab") + "}\n"), "did you mean web?"))
      << plan_refusal("base: base.yaml\nset: {" + stages("wab") + "}\n");
  EXPECT_TRUE(has(plan_refusal("set: {train.steps: {a: 1}}\n"), at(1) + "train.steps = (a map): must be "))
      << plan_refusal("set: {train.steps: {a: 1}}\n");
  EXPECT_TRUE(has(plan_refusal("set: {parallel.cuts: ['8,16']}\n"), "parallel.cuts = [\"8,16\"]: must be "))
      << plan_refusal("set: {parallel.cuts: ['8,16']}\n");
  EXPECT_TRUE(has(refusal("set: {train.steps: }\n"), at(1) + "train.steps must have a value"));
}

TEST_F(StudyFile, CombinationsAreChosenAndLeftOut) {
  const std::string grid = "base: {train: {steps: 5}}\naxes:\n  optim.lr: [1e-3, 2e-3]\n  optim.beta2: [0.9, 0.95]\n  run.seed: [1, 2]\n";
  EXPECT_EQ(expand(read(grid)).size(), 8u);
  const auto without = expand(read(grid + "exclude:\n  - {lr: 2e-3, beta2: 0.9}\n  - {seed: 2, optim.lr: lr=1e-3}\n"));
  EXPECT_EQ(without.size(), 4u);
  const auto alone = expand(read(grid + "only:\n  - {lr: 1e-3, beta2: [0.9, 0.95], seed: 1}\n"));
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_EQ(alone[1].name, "lr=1e-3+beta2=0.95+seed=1");
  EXPECT_TRUE(has(message_of([&] { expand(read(grid + "exclude: [{seed: [1, 2]}]\n")); }), "leave no run"));
  EXPECT_TRUE(has(refusal(grid + "only: [{seed: []}]\n"), "only: the list of points of seed is empty"));
}

TEST_F(StudyFile, AListOfRunsTakesThePlaceOfAGrid) {
  const Study study =
      read("runs:\n  - {name: a, set: {optim.lr: 1e-3}}\n  - {name: b, set: {optim.beta2: 0.99}}\naxes: {run.seed: [1, 2]}\nbaseline: a\n");
  const auto runs = expand(study);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[3].name, "b+seed=2");
  EXPECT_EQ(baseline_row(study, runs[3]), "a");
}

TEST_F(StudyFile, RanksFollowFromTheLayout) {
  const auto runs = plan_runs(read("base: {train: {global_batch: 8}}\naxes: {parallel.tp: [1, 2]}\nset: {parallel.dp: 2}\n"), {}, "out");
  EXPECT_EQ(runs[0].ranks, 2);
  EXPECT_EQ(runs[1].ranks, 4);
  EXPECT_TRUE(has(plan_refusal("ranks: 3\nset: {parallel.tp: 2}\n"), "3")) << plan_refusal("ranks: 3\nset: {parallel.tp: 2}\n");
}

TEST_F(StudyFile, RanksThatDoNotFitAreToldWithTheirLineAndRun) {
  const std::string told = plan_refusal(R"(ranks: 3
set: {parallel.tp: 2}
axes:
  a:
    - {name: x}
    - {name: y, ranks: 5}
    - {name: z, ranks: 2}
)");
  EXPECT_TRUE(has(told, at(1) + "ranks = 3: run x: parallel.tp (2) x ")) << told;
  EXPECT_TRUE(has(told, at(6) + "ranks = 5: run y: parallel.tp (2) x ")) << told;
  EXPECT_FALSE(has(told, "run z")) << told;
  const std::string all = plan_refusal("base: {train: {global_batch: 5, micro_batch: 1}}\nset: {parallel.dp: 2}\n");
  EXPECT_TRUE(has(all, "global_batch")) << all;
}

TEST_F(StudyFile, ThereIsAtLeastOneRank) {
  for (const std::string ranks : {"0", "-1"}) {
    const std::string told = refusal("ranks: " + ranks + "\naxes:\n  a:\n    - {name: x, ranks: " + ranks + "}\n");
    EXPECT_TRUE(has(told, at(1) + "ranks must be at least 1")) << told;
    EXPECT_TRUE(has(told, at(4) + "ranks must be at least 1")) << told;
  }
}

TEST_F(StudyFile, MistakesAreToldTogetherWithTheirLines) {
  const std::string told = refusal(R"(nam: x
axes:
  precision: [fp32, bf16]
  run.seed: []
  two:
    - {name: a b}
    - {set: {train.steps: 1}}
    - {name: c, sets: {}}
    - {name: c}
    - {name: d, set: {run.dir: x}}
  optim.lr: {points: [1], seed: true}
exclude: [{lrr: 1}, {lr: 7}]
baseline: nobody
collect: [final_los]
at_once: 0
ranks: many
)");
  EXPECT_TRUE(has(told, at(1) + "a study has no key 'nam'; did you mean name?")) << told;
  EXPECT_TRUE(has(told, at(3) + "the axis precision: a value needs a key")) << told;
  EXPECT_TRUE(has(told, at(4) + "the axis run.seed must have a list of points")) << told;
  EXPECT_TRUE(has(told, at(6) + "name = a b: a name has letters")) << told;
  EXPECT_TRUE(has(told, at(7) + "a point of two has no `name`")) << told;
  EXPECT_TRUE(has(told, at(8) + "a point of two has no key 'sets'; did you mean set?")) << told;
  EXPECT_TRUE(has(told, at(9) + "the axis two has two points c")) << told;
  EXPECT_TRUE(has(told, at(10) + "run.dir: each run")) << told;
  EXPECT_TRUE(has(told, at(11) + "the axis optim.lr has no key 'seed'; did you mean seeds?")) << told;
  EXPECT_TRUE(has(told, at(12) + "exclude: there is no axis lrr; did you mean")) << told;
  EXPECT_TRUE(has(told, at(12) + "exclude: the axis lr has no point 7; ")) << told;
  EXPECT_TRUE(has(told, at(13) + "baseline = nobody: no axis has such a point")) << told;
  EXPECT_TRUE(has(told, at(14) + "collect: there is no column final_los; did you mean final_loss?")) << told;
  EXPECT_TRUE(has(told, at(15) + "at_once must be at least 1")) << told;
  EXPECT_TRUE(has(told, at(16) + "ranks must be a whole number")) << told;
}

TEST_F(StudyFile, EachRunHasCheckpointsOfItsOwn) {
  const std::vector<PlannedRun> runs = plan_runs(read("axes: {run.seed: [1, 2]}\n"), {"checkpoint.dir=/big"}, "out");
  EXPECT_EQ(runs[0].config.checkpoint.dir, "/big/seed=1");
  EXPECT_EQ(runs[1].config.checkpoint.dir, "/big/seed=2");
  EXPECT_EQ(plan_runs(read("axes: {run.seed: [1, 2]}\n"), {}, "out")[0].config.checkpoint.dir, "") << "in the run's folder";
}

TEST_F(StudyFile, ABaselineIsOnePoint) {
  const std::string two = refusal("axes:\n  optim.beta1: [0.9, 0.95]\n  optim.beta2: [0.95, 0.99]\nbaseline: 0.95\n");
  EXPECT_TRUE(has(two, at(4) + "baseline = 0.95: points of 2 axes have this name or value: beta1=0.95, beta2=0.95")) << two;
  const std::string seed = refusal("axes:\n  run.seed: [1, 2]\n  optim.lr: [1e-3]\nbaseline: seed=1\n");
  EXPECT_TRUE(has(seed, at(4) + "baseline = seed=1: is a point of an axis of seeds; rows are means over seeds")) << seed;
  EXPECT_EQ(read("axes:\n  optim.beta1: [0.9, 0.95]\n  optim.beta2: [0.95, 0.99]\nbaseline: beta2=0.95\n").baseline, "beta2=0.95");
}

TEST_F(StudyFile, NamesOfValuesTellThemApart) {
  const Study study = read("axes: {optim.weight_decay: [1e+1, 1e-1]}\n");
  EXPECT_EQ(study.axes[0].points[0].name, "weight_decay=1e1");
  EXPECT_EQ(study.axes[0].points[1].name, "weight_decay=1e-1");
  const std::string seeds = refusal("axes: {run.seed: [1, 2]}\nbaseline: fast\n");
  EXPECT_TRUE(has(seeds, "baseline = fast: all axes are of seeds")) << seeds;
}

TEST_F(StudyFile, OneValueWrittenInTwoWaysIsRefused) {
  const std::string told = plan_refusal("axes: {run.seed: [1, 2], optim.lr: [1e-3, 2e-3, 0.001]}\n");
  EXPECT_TRUE(has(told, at(1) + "lr=1e-3 and lr=0.001 are numerically equal values")) << told;
  EXPECT_EQ(told.find("equal values"), told.rfind("equal values")) << told;
  EXPECT_EQ(plan_runs(read("axes: {again: {seeds: true, points: [{name: a}, {name: b}]}}\n"), {}, "out").size(), 2u)
      << "the same run twice, where that is what is asked for";
}

TEST_F(StudyFile, PointsThatAreNoPointsAreTold) {
  const std::string told = refusal("axes:\n  optim.lr:\n    - [1]\n    - ~\n    - {a: 1}\n    - {a: 1}\n");
  for (const int line : {3, 4}) EXPECT_TRUE(has(told, at(line) + "the axis optim.lr: a point must be a value, or {name")) << told;
  EXPECT_TRUE(has(told, at(5) + "a point of optim.lr has no key 'a'; there are name, set, ranks")) << told;
  EXPECT_FALSE(has(told, "two points")) << told;
}

TEST_F(StudyFile, KeysOfAllRunsAreCheckedTogetherAndToldOnce) {
  const std::string told = plan_refusal(R"(set: {train.stepz: 4}
axes:
  a:
    - {name: x, set: {optim.lr: fast}}
    - {name: y, set: {train.precision: bf17}}
  run.seed: [1, 2]
)");
  EXPECT_TRUE(has(told, at(1) + "train.stepz = 4: ")) << told;
  EXPECT_TRUE(has(told, at(4) + "optim.lr = fast: must be ")) << told;
  EXPECT_TRUE(has(told, at(5) + "train.precision = bf17: must be ")) << told;
  EXPECT_EQ(told.find("stepz"), told.rfind("stepz")) << told;
}

TEST_F(StudyFile, AKeyIsSetInOnePlace) {
  const std::string both = "axes:\n  a:\n    - {name: x, set: {optim.lr: 1e-3}}\n  optim.lr: [1e-3, 2e-3]\n";
  EXPECT_TRUE(has(plan_refusal(both), "optim.lr is set by the axis a and by the axis optim.lr")) << plan_refusal(both);
  const std::string word = plan_refusal("axes: {optim.lr: [1e-3, 2e-3]}\n", {"optim.lr=1"});
  EXPECT_TRUE(has(word, "command line: optim.lr is set by the axis optim.lr (" + dir_.path("s.yaml") + ":1)")) << word;
  EXPECT_TRUE(has(refusal("set: {optim.lr: 1, optim.lr: 2}\n"), "optim.lr is set twice")) << refusal("set: {optim.lr: 1, optim.lr: 2}\n");
  EXPECT_TRUE(has(plan_refusal("name: x\n", {"steps"}), "command line: steps: must have the form")) << plan_refusal("name: x\n", {"steps"});
  EXPECT_TRUE(has(plan_refusal("name: x\n", {"run.dir=a"}), "command line: run.dir: "));
  const std::string seed = plan_refusal("axes: {run.seed: [1, 2]}\n", {"run.seed=1"});
  EXPECT_FALSE(has(seed, "equal values")) << "what follows from another mistake is none: " << seed;
}

// train.steps, train.tokens and train.epochs take each other's place.
TEST_F(StudyFile, TheLengthOfARunIsSetInOnePlace) {
  const std::string axis = "axes:\n  train.tokens: [10240, 20480]\n", base = "base: {train: {seq_len: 128, global_batch: 8}}\n";
  EXPECT_EQ(plan_refusal(axis + base, {"train.steps=3"}),
            "command line: the length of the run (train.steps, there train.tokens) is set by the axis train.tokens (" +
                dir_.path("s.yaml") + ":2); --only chooses among its points");
  EXPECT_TRUE(has(plan_refusal(axis + base, {"train.tokens=0"}), "command line: train.tokens is set by the axis"));
  const std::string two = plan_refusal(axis + "  length:\n    - {name: short, set: {train.steps: 3}}\n" + base);
  EXPECT_EQ(two, at(4) + "the length of the run (train.steps, there train.tokens) is set by the axis train.tokens and by the axis length");
  const std::string point = plan_refusal("axes:\n  a:\n    - name: x\n      set: {train.steps: 3, train.tokens: 10240}\n" + base);
  EXPECT_TRUE(has(point, at(4) + "train.tokens = 10240: the length of the run is also given as train.steps = 3 (")) << point;
  const std::string words = plan_refusal(base, {"train.steps=3", "train.epochs=2"});
  EXPECT_TRUE(has(words, "command line: train.epochs = 2: the length of the run is also given as train.steps = 3 (command line)")) << words;
  // 0 leaves the length to the other keys, as in a config.
  EXPECT_EQ(plan_runs(read("set: {train.steps: 7}\n"), {"train.tokens=0"}, "out")[0].config.train.steps, 7);
  // The schedule may end elsewhere than the run: it has a key of its own.
  const std::string schedule = "axes: {optim.schedule_steps: [5, 6]}\nbase: {optim: {warmup: 1}}\n";
  EXPECT_EQ(plan_runs(read(schedule), {"train.steps=4"}, "out")[1].config.optim.schedule_steps, 6);
  EXPECT_TRUE(has(plan_refusal(schedule, {"optim.schedule_steps=4"}), "optim.schedule_steps is set by the axis optim.schedule_steps"));
}

TEST_F(StudyFile, WhatIsNoStudyIsRefused) {
  EXPECT_TRUE(has(refusal("- a\n"), at(1) + "must hold keys")) << refusal("- a\n");
  EXPECT_TRUE(has(refusal("a: [\n"), "is not valid YAML")) << refusal("a: [\n");
  EXPECT_TRUE(has(message_of([&] { read_study(dir_.path("none.yaml"), {}); }), "cannot be read: No such file"));
  EXPECT_TRUE(has(message_of([&] { read_study(dir_.path(), {}); }), "it is a folder"));
}

TEST_F(StudyFile, AConfigOfARunIsNamedAsOne) {
  for (const std::string text : {"model: {preset: nano}\ntrain: {steps: 5}\n", "optim: {lr: 1}\nname: a\n"})
    EXPECT_EQ(refusal(text),
              dir_.path("s.yaml") + ": this is a config of hlat train; a study names it as `base: s.yaml`, see docs/studies.md");
  EXPECT_TRUE(has(refusal("base: {}\ntrain: {steps: 5}\n"), at(2) + "a study has no key 'train'"));
}

TEST_F(StudyFile, KeysThatEndAlikeAreNamedAsAWhole) {
  const std::string text = "axes:\n  run.seed: [1, 2]\n  data.seed: [1, 3]\n  optim.lr: [1e-3]\n";
  const Study study = read(text + "exclude: [{run.seed: 2, data.seed: 3}]\n");
  EXPECT_TRUE(study.axes[0].seeds && study.axes[1].seeds);
  const std::vector<PlannedRun> runs = plan_runs(study, {}, "out");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].run.name, "run.seed=1+data.seed=3+lr=1e-3");
  EXPECT_EQ(runs[1].config.data.seed, 3u);
  EXPECT_TRUE(has(refusal(text + "only: [{seed: 1}]\n"), "only: there is no axis seed; ")) << refusal(text + "only: [{seed: 1}]\n");
  EXPECT_TRUE(has(refusal("axes:\n  - run.seed: [1]\n  - run.seed: [2]\n"), at(3) + "the axis run.seed is there twice, first in line 2"));
  const std::string both = refusal("axes:\n  run.seed: [1, 2]\n  seed: [{name: a}]\n");
  EXPECT_TRUE(has(both, at(3) + "the axis seed and the axis run.seed of line 2 can both be called seed; give one of them another name"))
      << both;
}

TEST_F(StudyFile, NamesChooseRunsRowsAndPoints) {
  const Study study = read(kGrid);
  const auto count = [&](const std::vector<std::string>& names) { return chosen_runs(study, plan_runs(study, {}, "out"), names).size(); };
  EXPECT_EQ(count({}), 6u);
  EXPECT_EQ(count({"full+seed=1"}), 1u);
  EXPECT_EQ(count({"sr"}), 3u);
  EXPECT_EQ(count({"seed=1", "sr+seed=2"}), 3u);
  EXPECT_EQ(count({"2"}), 2u) << "the value of a point";
  EXPECT_TRUE(has(message_of([&] { count({"sr+seed=4"}); }), "did you mean sr+seed="));
  EXPECT_TRUE(has(message_of([&] { count({"seed=7"}); }), "did you mean seed=")) << "a point";
  const std::string far = message_of([&] { count({"something_else"}); });
  EXPECT_TRUE(has(far, "--list shows the runs")) << far;
  for (const StudyAxis& axis : study.axes)
    for (const StudyPoint& point : axis.points) EXPECT_TRUE(has(far, point.name)) << far;
}

}  // namespace
}  // namespace hlat::test
