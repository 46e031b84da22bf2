// Steps whose micro-batches a device records: with all recordings, and where it has memory for some of them only.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "support/real_run.h"

namespace hlat {
namespace {

struct Recordings {
  int room = std::numeric_limits<int>::max();  // for how many there is memory
  int made = 0, ran = 0;
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
    if (told_.made == told_.room) {
      write_down(work);
      return nullptr;
    }
    ++told_.made;
    return std::make_unique<KeptWork>(work, told_);
  }

  // The calls are made before it turns out that memory is short, and nothing is computed.
  void write_down(const std::function<void()>& work) const {
    std::vector<std::vector<std::byte>> before;
    for (const auto& [p, bytes] : memory_) before.emplace_back(p, p + bytes);
    work();
    for (size_t i = 0; i < memory_.size(); ++i) std::copy(before[i].begin(), before[i].end(), memory_[i].first);
  }

  CpuBackend cpu_;
  Recordings& told_;
  std::vector<std::pair<std::byte*, size_t>> memory_;
};

struct Ran {
  std::vector<double> losses;
  std::vector<std::byte> weights;
  bool operator==(const Ran&) const = default;
};

// Four steps of three micro-batches, of which the third measures itself.
Ran run_on(const TestDevice& device) {
  Config config = tiny_config();
  config.train.global_batch = 6;
  config.monitor.every = 3;
  RealRun run(config, device);
  Ran ran;
  for (int64_t step = 1; step <= 4; ++step) ran.losses.push_back(run.step(step).loss);
  ran.weights = run.weight_bytes();
  return ran;
}

Ran run_recorded(Recordings& told) {
  return run_on({"recording", [&] { return std::make_unique<RecordingBackend>(told); }});
}

TEST(RecordedStep, HasTheBitsOfOneThatIsRunOpByOp) {
  Recordings told;
  EXPECT_TRUE(run_recorded(told) == run_on(cpu_device("auto", 1)));
  EXPECT_EQ(told.made, 4) << "the first micro-batch and the others, without and with measurements";
  EXPECT_EQ(told.ran, 9) << "all steps but the first";
}

TEST(RecordedStep, IsRunOpByOpWhereMemoryForARecordingIsShort) {
  const Ran expected = run_on(cpu_device("auto", 1));
  for (const auto& [room, ran] : {std::pair(0, 0), {1, 0}, {2, 6}, {3, 6}}) {
    Recordings told{.room = room};
    EXPECT_TRUE(run_recorded(told) == expected) << room;
    EXPECT_EQ(told.ran, ran) << room << ": a step is recorded whole or not at all";
  }
}

}  // namespace
}  // namespace hlat
