// Steps whose micro-batches a device records: with all recordings, and where it has memory for some of them only. What is recorded has been
// done op by op before, so that no op meets a recording first.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "support/precision_rows.h"
#include "support/real_run.h"

namespace hlat {
namespace {

struct Recordings {
  int room = std::numeric_limits<int>::max();  // for how many there is memory
  int made = 0, ran = 0;
  const Ops* ops = nullptr;                   // whose calls are recorded
  std::set<std::string_view> first_met = {};  // kinds of op that no call before a recording had asked for
};

// Keeps the work itself, and does it again when it is run.
class KeptWork final : public Recording {
 public:
  KeptWork(std::function<void()> work, Recordings& told) : work_(std::move(work)), told_(told) {}
  void run() override {
    ++told_.ran;
    work_();
  }

 private:
  std::function<void()> work_;
  Recordings& told_;
};

// The CPU, as a device that records.
class RecordingBackend final : public Backend, private Device {
 public:
  explicit RecordingBackend(Recordings& told) : cpu_(CpuOptions{.threads = 1}), told_(told) {}
  Device& device() override { return *this; }
  std::unique_ptr<Ops> make_ops(Region& temp) override { return cpu_.make_ops(temp); }
  std::string describe() const override { return cpu_.describe(); }

 private:
  std::byte* allocate(size_t bytes) override {
    std::byte* p = cpu_.device().allocate(bytes);
    memory_.emplace_back(p, bytes);
    return p;
  }
  void free(std::byte* p) override { cpu_.device().free(p); }
  void upload(Tensor dst, const void* host) override { cpu_.device().upload(dst, host); }
  void download(void* host, Tensor src) override { cpu_.device().download(host, src); }
  size_t memory_available() const override { return size_t{1} << 32; }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    write_down(work);
    if (told_.made == told_.room) return nullptr;
    ++told_.made;
    return std::make_unique<KeptWork>(work, told_);
  }

  // The calls are made before it turns out that memory is short, and nothing is computed.
  void write_down(const std::function<void()>& work) const {
    std::vector<std::vector<std::byte>> before;
    for (const auto& [p, bytes] : memory_) before.emplace_back(p, p + bytes);
    const Cost met = told_.ops->cost();
    work();
    for (int k = 0; k < kOpKinds; ++k)
      if (const auto kind = static_cast<OpKind>(k); met[kind].calls == 0 && told_.ops->cost()[kind].calls > 0)
        told_.first_met.insert(name_of(kind));
    for (size_t i = 0; i < memory_.size(); ++i) std::copy(before[i].begin(), before[i].end(), memory_[i].first);
  }

  CpuBackend cpu_;
  Recordings& told_;
  std::vector<std::pair<std::byte*, size_t>> memory_;
};

struct Ran {
  std::vector<double> losses, fp8_saturated;
  std::vector<std::byte> weights;
  bool operator==(const Ran&) const = default;
};

// Six steps of three micro-batches, of which the third and the sixth measure themselves. In the second and the sixth the scales of FP8 are
// too large.
Ran run_on(const TestDevice& device, PrecisionKind precision = PrecisionKind::fp32, Recordings* told = nullptr) {
  Config config = tiny_config();
  config.train.precision = precision;
  fit_fp8(config);
  config.train.global_batch = 6;
  config.monitor.every = 3;
  RealRun run(config, device);
  if (told != nullptr) told->ops = &run.executor().ops();
  const Fp8State& state = run.executor().params().fp8_state();
  Ran ran;
  for (int64_t step = 1; step <= 6; ++step) {
    for (const ParamId id : state.params()) {
      if (step != 2 && step != 6) break;
      run.executor().ops().fill(state.scale(id, Fp8Role::input).rows(0, kFp8Inverse), 1024);
      run.executor().ops().fill(state.scale(id, Fp8Role::input).rows(kFp8Inverse, kFp8Scale), 0x1p-10);
    }
    const StepResult r = run.step(step);
    ran.losses.push_back(r.loss);
    if (r.monitors) ran.fp8_saturated.insert(ran.fp8_saturated.end(), r.monitors->fp8_saturated.begin(), r.monitors->fp8_saturated.end());
  }
  ran.weights = run.weight_bytes();
  return ran;
}

Ran run_recorded(Recordings& told, PrecisionKind precision = PrecisionKind::fp32) {
  return run_on({"recording", [&] { return std::make_unique<RecordingBackend>(told); }}, precision, &told);
}

TEST(RecordedStep, HasTheBitsOfOneThatIsRunOpByOp) {
  Recordings told;
  EXPECT_TRUE(run_recorded(told) == run_on(cpu_device("auto", 1)));
  EXPECT_EQ(told.made, 4) << "the first micro-batch and the others, without and with measurements";
  EXPECT_EQ(told.ran, 12) << "all steps but the first of each kind";
}

TEST(RecordedStep, HasNoOpThatWasNotMetBefore) {
  Recordings told;
  run_recorded(told);
  EXPECT_EQ(told.made, 4);
  EXPECT_EQ(told.first_met, std::set<std::string_view>{});
}

// Both recordings count: without measurements that of step 2, which step 3 tells, and with them that of step 6.
TEST(RecordedStep, CountsWhatFp8CannotHold) {
  Recordings told;
  const Ran ran = run_recorded(told, PrecisionKind::fp8);
  EXPECT_TRUE(ran == run_on(cpu_device("auto", 1), PrecisionKind::fp8));
  EXPECT_EQ(told.made, 4);
  ASSERT_EQ(ran.fp8_saturated.size(), size_t{2} * kFp8Roles);
  EXPECT_GT(ran.fp8_saturated[0], 0.01);
  EXPECT_GT(ran.fp8_saturated[kFp8Roles], 0.01);
}

TEST(RecordedStep, IsRunOpByOpWhereMemoryForARecordingIsShort) {
  const Ran expected = run_on(cpu_device("auto", 1));
  for (const auto& [room, ran] : {std::pair(0, 0), {1, 0}, {2, 9}, {3, 9}}) {
    Recordings told{.room = room};
    EXPECT_TRUE(run_recorded(told) == expected) << room;
    EXPECT_EQ(told.ran, ran) << room << ": a step is recorded whole or not at all";
  }
}

}  // namespace
}  // namespace hlat
