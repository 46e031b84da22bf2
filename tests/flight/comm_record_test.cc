// Calls of real groups in the record: what others read of a rank that waits.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/comm_queue.h"
#include "flight/rank_view.h"
#include "supervise/evidence.h"
#include "supervise/wait_graph.h"
#include "support/temp_dir.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

// Ranks that are threads, each with a ring.
struct RecordedRanks {
  explicit RecordedRanks(int size) {
    for (int r = 0; r < size; ++r) {
      flights.push_back(
          std::make_unique<FlightRecorder>(flight_ring_file(dir.path(), r), FlightOrigin{.rank = r, .ranks = size, .host = "here"}));
      readers.push_back(*RingReader::open(flight_ring_file(dir.path(), r)));
    }
  }
  RankViews views() const {
    RankViews all;
    for (const RingReader& reader : readers) all.emplace_back(reader.view());
    return all;
  }
  template <class Condition>
  bool comes(const Condition& condition) const {
    for (int tries = 0; tries < 6000; ++tries) {
      if (condition(views())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  test::TempDir dir;
  std::vector<std::unique_ptr<FlightRecorder>> flights;
  std::vector<RingReader> readers;
};

TEST(CommRecord, RanksThatWaitInACollectiveNameTheOneThatDoesNotCome) {
  constexpr int kRanks = 3;
  RecordedRanks ranks(kRanks);
  std::atomic<bool> go = false;
  std::thread watcher([&] {
    const bool waits = ranks.comes([](const RankViews& v) {
      const auto calls = [&](size_t rank) { return v[rank]->groups.size() == 1 ? v[rank]->groups[0] : GroupView{}; };
      return calls(0).entered == 3 && calls(1).left == 2 && calls(2).entered == 3;
    });
    EXPECT_TRUE(waits);
    const RankViews views = ranks.views();
    const WaitGraph graph = wait_graph(views);
    EXPECT_EQ(graph.culprits, std::vector<int>{1});
    EXPECT_EQ(graph.waiting_for(1), (std::vector<int>{0, 2}));
    EXPECT_EQ(views[1]->groups.at(0).entered, 2u);
    EXPECT_FALSE(views[1]->groups.at(0).open);
    EXPECT_NE(evidence_text(views).find("in world barrier 3"), std::string::npos) << evidence_text(views);
    EXPECT_NE(events_text(ranks.readers[0]).find("enters world barrier 3"), std::string::npos);
    go = true;
  });
  run_thread_ranks(kRanks, [&](Comm& world) {
    world.record_to(*ranks.flights[static_cast<size_t>(world.rank())], 1);
    world.barrier();
    world.barrier();
    while (world.rank() == 1 && !go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    world.barrier();
  });
  watcher.join();
  for (const auto& v : ranks.views()) {
    EXPECT_FALSE(v->groups.at(0).open);
    EXPECT_EQ(v->groups.at(0).left, 3u);
  }
}

TEST(CommRecord, AQueueIsInTheBackgroundUntilItIsWaitedFor) {
  RecordedRanks ranks(2);
  std::atomic<int> stage = 0;
  std::thread watcher([&] {
    EXPECT_TRUE(ranks.comes([](const RankViews& v) { return !v[0]->groups.empty() && v[0]->groups[0].open && v[0]->groups[0].queued; }));
    EXPECT_FALSE(wait_graph(ranks.views()).blocked(0));
    stage = 1;
    EXPECT_TRUE(ranks.comes([](const RankViews& v) { return v[0]->groups[0].awaited; }));
    const WaitGraph graph = wait_graph(ranks.views());
    EXPECT_TRUE(graph.blocked(0));
    EXPECT_EQ(graph.culprits, std::vector<int>{1});
    stage = 2;
  });
  run_thread_ranks(2, [&](Comm& world) {
    world.record_to(*ranks.flights[static_cast<size_t>(world.rank())], 1);
    const auto until = [&](int wanted) {
      while (stage < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    if (world.rank() == 1) until(2);
    CommQueue queue(world);
    queue.submit([](Comm& comm) { comm.barrier(); });
    if (world.rank() == 0) until(1);
    queue.wait_all();
  });
  watcher.join();
  for (const auto& v : ranks.views()) EXPECT_FALSE(v->groups.at(0).queued || v->groups.at(0).awaited);
}

TEST(CommRecord, AMessageNamesItsPeerAndACallThatThrewStaysOpen) {
  RecordedRanks ranks(2);
  std::thread watcher([&] {
    EXPECT_TRUE(ranks.comes([](const RankViews& v) {
      return !v[0]->groups.empty() && v[0]->groups[0].open && v[0]->groups[0].kind == static_cast<uint8_t>(CommKind::recv);
    }));
  });
  EXPECT_THROW(run_thread_ranks(2,
                                [&](Comm& world) {
                                  world.record_to(*ranks.flights[static_cast<size_t>(world.rank())], 1);
                                  if (world.rank() == 1) {
                                    watcher.join();
                                    throw FaultError("rank 1 fails");
                                  }
                                  float value = 0;
                                  Request request = world.recv(Tensor::contiguous(&value, DType::f32, {1}), 1, 0);
                                  world.wait(request);
                                }),
               FaultError);
  const RankViews views = ranks.views();
  const GroupView& g = views[0]->groups.at(0);
  EXPECT_TRUE(g.open);
  EXPECT_EQ(g.peer, 1);
  EXPECT_EQ(g.entered, 0u);
  const WaitGraph graph = wait_graph(views);
  ASSERT_EQ(graph.waits.size(), 1u);
  EXPECT_EQ(operation_name(graph.waits[0]), "world recv from rank 1");
}

}  // namespace
}  // namespace hlat
