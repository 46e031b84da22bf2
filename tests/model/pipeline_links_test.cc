// Messages between pipeline stages: each arrives with the stage and chunk that it is for, round the end of the pipeline too, in whatever
// order the receiver asks, from buffers that are used again only when they have left.
#include "model/pipeline_links.h"

#include <gtest/gtest.h>

#include "support/host_memory.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

constexpr int64_t kRows = 5, kWidth = 3;

double stamp(Flow flow, int stage, int chunk, int64_t micro) {
  return 10000.0 * static_cast<int>(flow) + 1000.0 * stage + 100.0 * chunk + static_cast<double>(micro);
}

struct Links {
  explicit Links(Comm& pp, int chunks)
      : region(memory.region(Purpose::comm, 1 << 16)), links(pp, region, DType::f32, {kRows, kWidth}, chunks), stage(pp.rank()) {}

  void send(Flow flow, int64_t micro, int chunk, int64_t rows) {
    const Tensor t = links.buffer(flow, rows);
    ASSERT_EQ(t.shape, (Shape{rows, kWidth}));
    for (int64_t i = 0; i < t.numel(); ++i) store_f64(t, i, stamp(flow, stage, chunk, micro) + static_cast<double>(i) / 32);
    links.send(flow, micro, chunk);
  }
  void expect(Flow flow, int64_t micro, int chunk, int64_t rows, int from_stage, int from_chunk) {
    const Tensor t = memory.zeros(DType::f32, {rows, kWidth});
    links.recv(flow, t, micro, chunk);
    for (int64_t i = 0; i < t.numel(); ++i)
      ASSERT_EQ(load_f64(t, i), stamp(flow, from_stage, from_chunk, micro) + static_cast<double>(i) / 32) << "stage " << stage;
  }

  HostMemory memory;
  Region region;
  PipelineLinks links;
  int stage;
};

TEST(PipelineLinks, MessagesReachTheNextStageAndChunkInAnyOrder) {
  constexpr int kStages = 3, kChunks = 2;
  run_thread_ranks(kStages, [&](Comm& world) {
    Links l(world, kChunks);
    const int last = kStages - 1;
    for (int64_t micro = 0; micro < 8; micro += 2)
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        // Two micro-batches are under way in each direction, and are taken the other way round.
        const bool ends = l.stage == last && chunk == kChunks - 1, begins = l.stage == 0 && chunk == 0;
        for (const int64_t m : {micro, micro + 1}) {
          if (!ends) l.send(Flow::forward, m, chunk, kRows);
          if (!begins) l.send(Flow::backward, m, chunk, 2);
        }
        // What came in: the last stage's chunk 0 is the first stage's chunk 1, and back.
        for (const int64_t m : {micro + 1, micro}) {
          if (l.stage > 0) l.expect(Flow::forward, m, chunk, kRows, l.stage - 1, chunk);
          if (l.stage == 0 && chunk == 0) l.expect(Flow::forward, m, 1, kRows, last, 0);
          if (l.stage < last) l.expect(Flow::backward, m, chunk, 2, l.stage + 1, chunk);
          if (l.stage == last && chunk == 1) l.expect(Flow::backward, m, 0, 2, 0, 1);
        }
      }
    l.links.flush();
    // Two buffers for each direction, however many messages left.
    constexpr size_t kBuffer = (kRows * kWidth * 4 + kAlign - 1) / kAlign * kAlign;
    EXPECT_EQ(l.region.high_water(), 2 * kSendBuffers * kBuffer);
  });
}

// Micro-batches that share a tag arrive in the order in which they were sent.
TEST(PipelineLinks, ManyMicroBatchesKeepTheirOrder) {
  run_thread_ranks(2, [](Comm& world) {
    Links l(world, 1);
    for (int64_t micro = 0; micro < 600; ++micro)
      if (l.stage == 0)
        l.send(Flow::forward, micro, 0, 1);
      else
        l.expect(Flow::forward, micro, 0, 1, 0, 0);
    l.links.flush();
  });
}

TEST(PipelineLinks, RefusesMoreChunksThanThereAreTags) {
  run_thread_ranks(2, [](Comm& world) {
    HostMemory memory;
    Region region = memory.region(Purpose::comm, 1 << 16);
    EXPECT_THROW(PipelineLinks(world, region, DType::f32, {kRows, kWidth}, 1 << 12), CheckFailed);
  });
}

}  // namespace
}  // namespace hlat
