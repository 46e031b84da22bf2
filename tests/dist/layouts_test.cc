// The real binary under mpirun, in layouts of up to 8 ranks: the same training as one process, step by step.
#include <gtest/gtest.h>

#include <cmath>

#include "dist/job.h"
#include "support/test_device.h"

namespace hlat::test {
namespace {

using nlohmann::json;

struct Layout {
  const char* name;
  int ranks;
  Job::Words words;         // of this layout alone
  Job::Words shared = {};   // also of the process it is compared with
  double tolerance = 1e-5;  // f32 sums cut among ranks round in another order, 1e-7 at a time, and five steps build on them
};

constexpr double kBf16 = 0.02;  // a partial sum rounded to bf16 (2^-9) before it is added to the others

std::vector<json> run(int ranks, const Layout& layout, bool alone) {
  Job::Words words = layout.shared;
  if (!alone) words.insert(words.end(), layout.words.begin(), layout.words.end());
  Job job(ranks, tiny_run(words), {"--bind-to", "none"});
  const RunResult r = job.wait(120);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return job.metrics();
}

class Layouts : public testing::TestWithParam<Layout> {};

TEST_P(Layouts, TrainAsOneProcess) {
  const Layout& layout = GetParam();
  const auto one = run(0, layout, true), many = run(layout.ranks, layout, false);
  ASSERT_EQ(one.size(), 5u);
  ASSERT_EQ(many.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) {
    for (const char* key : {"step", "tokens", "floor", "lr"}) EXPECT_EQ(many[i][key], one[i][key]) << key << " of step " << i + 1;
    for (const char* key : {"loss", "grad_norm", "param_norm"}) {
      const double expected = one[i][key], got = many[i][key];
      EXPECT_NEAR(got, expected, layout.tolerance * std::abs(expected)) << key << " of step " << i + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mpi, Layouts,
    testing::Values(Layout{"tp2", 2, {"parallel.tp=2"}},  //
                    Layout{"tp4_sp", 4, {"parallel.tp=4", "parallel.sequence=true"}}, Layout{"tp8", 8, {"parallel.tp=8"}},
                    Layout{"pp4", 4, {"parallel.pp=4"}}, Layout{"pp2_chunks2", 2, {"parallel.pp=2", "parallel.chunks=2"}},
                    Layout{"dp2", 2, {"parallel.zero1=false"}}, Layout{"dp4_zero1", 4, {"parallel.zero1=true"}},
                    Layout{"tp2_sp_pp2_dp2_zero1", 8, {"parallel.tp=2", "parallel.pp=2", "parallel.sequence=true", "parallel.zero1=true"}},
                    Layout{"tied_tp2_pp2", 4, {"parallel.tp=2", "parallel.pp=2"}, {"model.tied=true"}},
                    Layout{"mixed_tp2_dp2", 4, {"parallel.tp=2"}, {"train.precision=mixed"}, kBf16},
                    Layout{"bf16_sr_pp2_dp2", 4, {"parallel.pp=2"}, {"train.precision=bf16_sr"}, kBf16}),
    [](const auto& test) { return std::string(test.param.name); });

// All ranks on this machine's first GPU or, where there are more, in turn: through host memory or by NCCL.
std::vector<Layout> gpu_layouts() {
  if (!has_gpu()) return {};
  const Job::Words cuda = {"device.backend=cuda"}, mixed = {"device.backend=cuda", "train.precision=mixed"};
  return {Layout{"tp2_sp", 2, {"parallel.tp=2", "parallel.sequence=true"}, cuda},
          Layout{"pp2_chunks2", 2, {"parallel.pp=2", "parallel.chunks=2"}, cuda}, Layout{"dp4_zero1", 4, {"parallel.zero1=true"}, cuda},
          Layout{"mixed_tp2_pp2", 4, {"parallel.tp=2", "parallel.pp=2"}, mixed, kBf16}};
}
INSTANTIATE_TEST_SUITE_P(cuda, Layouts, testing::ValuesIn(gpu_layouts()), [](const auto& test) { return std::string(test.param.name); });

TEST(LayoutsOfData, TellTheSameRowsBySource) {
  const TempDir data;
  ASSERT_EQ(run_binary({"data", "sample", "--out", data.path("a"), "--documents", "100"}).exit_code, 0);
  const Job::Words words = {"data.tokenizer=" + data.path("a/tokenizer.json"),
                            "data.sources[0].name=web",
                            "data.sources[0].weight=3",
                            "data.sources[0].path=" + data.path("a/*.jsonl"),
                            "data.sources[1].name=more",
                            "data.sources[1].path=" + data.path("a/*.jsonl"),
                            "model.vocab=2048"};
  const auto one = run(0, {.name = "", .ranks = 0, .words = {}, .shared = words}, true);
  ASSERT_EQ(one.size(), 5u);
  for (const char* axes : {"parallel.dp=2", "parallel.pp=2", "parallel.tp=2"}) {
    const auto two = run(2, {.name = "", .ranks = 2, .words = {axes}, .shared = words}, false);
    ASSERT_EQ(two.size(), 5u) << axes;
    for (size_t i = 0; i < 5; ++i)
      for (const char* key : {"rows/web", "rows/more"}) EXPECT_EQ(two[i].at(key), one[i].at(key)) << axes << " step " << i + 1;
  }
}

TEST(LayoutsTwice, AreBitIdentical) {
  const Layout layout{"", 4, {"parallel.tp=2", "parallel.sequence=true"}, {"train.precision=bf16_sr"}};
  const auto a = run(4, layout, false), b = run(4, layout, false);
  ASSERT_EQ(a.size(), 5u);
  ASSERT_EQ(b.size(), a.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (const char* key : {"loss", "floor", "grad_norm", "param_norm"}) EXPECT_EQ(a[i][key].dump(), b[i][key].dump()) << key;
}

TEST(RunFolder, StartsAgainOnAnotherNumberOfRanksWhereDpWasAuto) {
  Job two(2, tiny_run({"train.steps=2", "run.sample_lines=0"}));
  const RunResult first = two.wait();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string record = two.dir().path("run/config.yaml");
  EXPECT_NE(slurp(record).find("\n  dp: auto  # 2 in this run\n"), std::string::npos) << slurp(record);
  Job one(0, {"train", "--config", record, "run.dir=run"});
  const RunResult second = one.wait();
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(one.metrics().size(), 2u);
}

}  // namespace
}  // namespace hlat::test
