// Planted faults of one rank, without a run: when they come, that they come once, and what they do to numbers.
#include "fault/injector.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "fault/planted.h"
#include "support/real_run.h"
#include "support/temp_dir.h"

namespace hlat::fault {
namespace {

// A rank whose signals are only noted.
class FakeRank {
 public:
  FakeRank(const test::TempDir& dir, const std::string& inject, InjectorSetup setup = {}, const FaultConfig& more = {}) {
    config = tiny_config();
    config.run.dir = dir.path("run");
    config.fault = more;
    config.fault.inject = inject;
    setup.say = [this](const std::string& text) { said.push_back(text); };
    setup.signal = [this](int pid, int number) { signals.emplace_back(pid, number); };
    setup.clock = [this] { return clock; };
    setup.host_processes = [] { return std::vector{17, 18}; };
    injector.emplace(config, setup);
  }

  Config config;
  std::vector<std::string> said;
  std::vector<std::pair<int, int>> signals;
  double clock = 0;
  std::optional<Injector> injector;
};

std::vector<nlohmann::json> fired_in(const test::TempDir& dir) {
  std::ifstream in(dir.path("run/faults.jsonl"));
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

const std::vector<std::pair<int, int>> kKilled = {{getpid(), SIGKILL}};

TEST(Injector, AFaultComesAtItsStepInItsRankAndIsRecordedFirst) {
  const test::TempDir dir;
  FakeRank other(dir, "kill rank=1 step=20", {.rank = 0, .ranks = 2});
  FakeRank rank(dir, "kill rank=1 step=20", {.rank = 1, .ranks = 2, .attempt = 3});
  for (int64_t step = 18; step < 20; ++step) rank.injector->at_step(step), other.injector->at_step(step);
  EXPECT_TRUE(rank.signals.empty());
  rank.injector->at_step(20), other.injector->at_step(20);
  EXPECT_EQ(rank.signals, kKilled);
  EXPECT_TRUE(other.signals.empty());
  EXPECT_EQ(rank.said, std::vector<std::string>{"fault.inject: kill of rank 1 at step 20"});
  const auto fired = fired_in(dir);
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0]["fault"], "kill rank=1 step=20");
  EXPECT_EQ(fired[0]["rank"], 1);
  EXPECT_EQ(fired[0]["step"], 20);
  EXPECT_EQ(fired[0]["attempt"], 3);
}

TEST(Injector, AFaultComesOnceAndWithTimesSoOften) {
  const test::TempDir dir;
  int came = 0;
  for (int start = 0; start < 4; ++start) {
    FakeRank rank(dir, "kill rank=0 step=3; stop step=4 times=2");
    for (int64_t step = 1; step < 6; ++step) rank.injector->at_step(step);
    came += static_cast<int>(rank.signals.size());
    std::vector<std::pair<int, int>> expected;
    if (start == 0) expected.emplace_back(getpid(), SIGKILL);
    if (start < 2) expected.emplace_back(getpid(), SIGSTOP);
    EXPECT_EQ(rank.signals, expected) << "start " << start;
  }
  EXPECT_EQ(came, 3);
  FakeRank fresh(dir, "kill rank=0 step=3", {.fresh = true});
  fresh.injector->at_step(3);
  EXPECT_EQ(fresh.signals, kKilled) << "a new run meets it again";
}

TEST(Injector, ALineThatWasCutOffCountsNothing) {
  const test::TempDir dir;
  std::filesystem::create_directory(dir.path("run"));
  dir.write("run/faults.jsonl", "{\"fault\":\"kill rank=0 st");
  FakeRank rank(dir, "kill rank=0 step=3");
  rank.injector->at_step(3);
  EXPECT_EQ(rank.signals, kKilled);
  FakeRank again(dir, "kill rank=0 step=3");
  again.injector->at_step(3);
  EXPECT_TRUE(again.signals.empty()) << "its line is whole";
}

TEST(Injector, OtherEnds) {
  const test::TempDir dir;
  FakeRank rank(dir, "crash step=1; error step=2; host step=3; hang step=4 seconds=0.001");
  rank.injector->at_step(1);
  EXPECT_EQ(rank.signals.back(), std::pair(getpid(), SIGSEGV));
  EXPECT_THROW(rank.injector->at_step(2), Error);
  rank.signals.clear();
  rank.injector->at_step(3);
  EXPECT_EQ(rank.signals, (std::vector<std::pair<int, int>>{{17, SIGKILL}, {18, SIGKILL}, {getpid(), SIGKILL}}));
  rank.injector->at_step(4);
  EXPECT_EQ(rank.said.back(), "fault.inject: hang of rank 0 at step 4");
}

TEST(Injector, AnyRankIsOneRank) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    int victims = 0;
    for (int rank = 0; rank < 4; ++rank) {
      const test::TempDir dir;
      FakeRank one(dir, "kill rank=any step=2", {.rank = rank, .ranks = 4}, {.inject = "", .kinds = "", .seed = seed});
      one.injector->at_step(2);
      victims += static_cast<int>(one.signals.size());
    }
    EXPECT_EQ(victims, 1);
  }
}

std::string refusal(const std::string& inject, const InjectorSetup& setup) {
  const test::TempDir dir;
  try {
    FakeRank rank(dir, inject, setup);
    return "";
  } catch (const UsageError& e) {
    return e.what();
  }
}

TEST(Injector, RanksThatAreNotThereAreToldAtTheStart) {
  const std::string text = refusal("kill rank=4 step=2; hang rank=3 step=2; stop rank=9 step=1", {.rank = 1, .ranks = 4});
  EXPECT_EQ(text,
            "fault.inject: kill rank=4 step=2: there is no such rank; there are ranks 0 to 3\n"
            "fault.inject: stop rank=9 step=1: there is no such rank; there are ranks 0 to 3");
  EXPECT_NE(refusal("lost step=2", {}).find("a run of one rank has no messages to lose"), std::string::npos);
  EXPECT_EQ(refusal("kill rank=3 step=2", {.rank = 0, .ranks = 3, .attempt = 2}), "") << "a run may go on with fewer ranks";
}

TEST(Injector, APhaseHangs) {
  const test::TempDir dir;
  FakeRank rank(dir, "hang_start phase=data seconds=0.001");
  rank.injector->at_phase("joining the other ranks (MPI_Init)");
  EXPECT_TRUE(rank.said.empty());
  rank.injector->at_phase("opening the data, after rank 0");
  rank.injector->at_phase("opening the data, after rank 0");
  EXPECT_EQ(rank.said, std::vector<std::string>{"fault.inject: hang_start of rank 0 in phase data"});
}

TEST(Injector, RandomFaultsMeetOneRankEachAfterAFirstStep) {
  const FaultConfig often{.inject = "", .every_s = 1, .kinds = "kill", .seed = 5};
  int struck = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const test::TempDir dir;
    FakeRank one(dir, "", {.rank = rank, .ranks = 3}, often);
    one.clock = 60;
    one.injector->at_step(41);
    EXPECT_TRUE(one.signals.empty()) << "no step is done yet";
    one.injector->at_step(42);
    struck += static_cast<int>(one.signals.size());
    for (const nlohmann::json& entry : fired_in(dir)) EXPECT_EQ(entry["random"], true);
    const size_t before = one.signals.size();
    one.injector->at_step(43);
    EXPECT_EQ(one.signals.size(), before) << "no time has passed";
  }
  RandomFaults all(5, 1, 1, {FaultKind::kill}, 3);
  int expected = 0;
  for (; all.next().at_s <= 60; all.draw()) ++expected;
  EXPECT_EQ(struck, expected);
}

TEST(Injector, ADiskIsFullForAsManySavesAsPlanted) {
  const test::TempDir dir;
  FakeRank rank(dir, "disk_full step=4 times=2");
  rank.injector->at_step(3);
  EXPECT_NO_THROW(rank.injector->before_write(0));
  rank.injector->at_step(5);
  EXPECT_NO_THROW(rank.injector->before_write(100)) << "within a save";
  EXPECT_THROW(rank.injector->before_write(0), DiskFull);
  EXPECT_THROW(rank.injector->before_write(0), DiskFull);
  EXPECT_NO_THROW(rank.injector->before_write(0));
}

TEST(Injector, PlantedFaultsOfACheck) {
  const FaultConfig config{.inject = "check_slow rank=2 factor=3; check_disk rank=any", .kinds = "", .seed = 4};
  EXPECT_TRUE(planted(config, FaultKind::check_slow, 2, 4));
  EXPECT_EQ(planted(config, FaultKind::check_slow, 2, 4)->factor, 3);
  EXPECT_FALSE(planted(config, FaultKind::check_slow, 1, 4));
  EXPECT_FALSE(planted(config, FaultKind::check_matmul, 2, 4));
  int full = 0;
  for (int rank = 0; rank < 4; ++rank) full += planted(config, FaultKind::check_disk, rank, 4) ? 1 : 0;
  EXPECT_EQ(full, 1);
}

// The tensors of a real model of one rank.
class InjectedNumbers : public testing::Test {
 protected:
  InjectedNumbers() : run_(tiny_config()) { run_.step(1); }

  std::vector<float> floats(const std::vector<std::byte>& bytes) const {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  void strike(const std::string& inject) {
    FakeRank rank(dir_, inject);
    rank.injector->place(run_.model().mesh(), run_.executor().params(), run_.device(), 10);
    rank.injector->at_step(2);
    for (size_t b = 0; b < run_.executor().params().buckets().size(); ++b) rank.injector->gradients(b), rank.injector->sums(b);
    rank.injector->weights();
    said_ = rank.said;
  }

  test::TempDir dir_;
  RealRun run_;
  std::vector<std::string> said_;
};

TEST_F(InjectedNumbers, ANanIsOneElementOfAGradient) {
  const auto weights = run_.weight_bytes();
  const std::vector<float> before = floats(run_.grad_bytes());
  strike("nan step=2");
  const std::vector<float> after = floats(run_.grad_bytes());
  int changed = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    if (std::isnan(after[i]))
      ++changed;
    else
      ASSERT_EQ(after[i], before[i]);
  }
  EXPECT_EQ(changed, 1);
  EXPECT_EQ(run_.weight_bytes(), weights);
}

TEST_F(InjectedNumbers, AFlippedBitIsOneBitOfTheNamedTensor) {
  const ParamStore& params = run_.executor().params();
  const std::string name = params.spec(params.size() - 1).name;
  for (const bool weight : {true, false}) {
    const auto bytes = [&] { return weight ? run_.weight_bytes() : run_.grad_bytes(); };
    const std::vector<std::byte> before = bytes();
    strike(std::string(weight ? "bitflip_weight" : "bitflip_grad") + " step=2 tensor=" + name);
    const std::vector<std::byte> after = bytes();
    int bits = 0;
    for (size_t i = 0; i < after.size(); ++i) bits += std::popcount(std::to_integer<unsigned>(before[i] ^ after[i]));
    EXPECT_EQ(bits, 1);
    const size_t tail = params.weight(params.size() - 1).bytes();
    EXPECT_TRUE(std::equal(before.begin(), before.end() - static_cast<int64_t>(tail), after.begin())) << "only its last tensor may differ";
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_NE(said_[0].find(name), std::string::npos) << said_[0];
  }
}

TEST_F(InjectedNumbers, ASpikeMultipliesAll) {
  const std::vector<float> before = floats(run_.grad_bytes());
  strike("spike step=2 factor=8");
  const std::vector<float> after = floats(run_.grad_bytes());
  for (size_t i = 0; i < after.size(); ++i) ASSERT_EQ(after[i], 8 * before[i]);
}

TEST_F(InjectedNumbers, ATensorThatIsNotThereIsToldAtTheStart) {
  FakeRank rank(dir_, "nan step=2 tensor=layers.99.wq");
  EXPECT_THROW(rank.injector->place(run_.model().mesh(), run_.executor().params(), run_.device(), 10), UsageError);
}

}  // namespace
}  // namespace hlat::fault
