// Known data through real groups of threads: right where nothing is planted, wrong where a bit is flipped.
#include "burnin/comm_cases.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <mutex>

#include "burnin/corrupting_comm.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

constexpr std::array<Collective, 4> kOps = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                            Collective::send_recv};

// Elements that come out wrong on a rank.
int64_t wrong_elements(const CommCase& c, Comm& comm) {
  std::vector<float> full(static_cast<size_t>(c.elements), -1), own(full);
  const CommBuffers buffers{.full = Tensor::contiguous(full.data(), DType::f32, {c.elements}),
                            .own = Tensor::contiguous(own.data(), DType::f32, {c.elements})};
  const std::vector<float> input = comm_input(c, comm.rank(), comm.size()), known = comm_output(c, comm.rank(), comm.size());
  std::copy(input.begin(), input.end(), comm_input_of(c, buffers, comm.rank(), comm.size()).as<float>());
  run_case(c, buffers, comm);
  const float* got = comm_output_of(c, buffers, comm.rank(), comm.size()).as<float>();
  int64_t wrong = 0;
  for (size_t i = 0; i < known.size(); ++i) wrong += got[i] != known[i] ? 1 : 0;
  return wrong;
}

void reserve(Comm& comm, std::vector<std::byte>& memory) {
  memory.resize(sum_staging(comm.size()) + 2 * kAlign);
  Region region(Purpose::comm, memory.data() + (kAlign - reinterpret_cast<uintptr_t>(memory.data()) % kAlign), memory.size() - kAlign);
  comm.reserve(region);
}

TEST(CommCases, SoundGroupsGiveTheKnownResults) {
  for (const int size : {2, 3, 5})
    run_thread_ranks(size, [&](Comm& world) {
      std::vector<std::byte> memory;
      reserve(world, memory);
      for (const Collective op : kOps)
        for (const int64_t elements : {int64_t{1}, int64_t{256}, int64_t{20001}})
          EXPECT_EQ(wrong_elements({.op = op, .elements = elements}, world), 0) << name_of(op) << " " << elements << " of " << size;
    });
}

TEST(CommCases, AFlippedBitIsSeenByTheRankThatReceivesIt) {
  std::mutex mutex;
  std::map<int, int64_t> gathered, sent;
  run_thread_ranks(3, [&](Comm& world) {
    CorruptingComm comm(world.split(0, world.rank(), "dp"), world.rank() == 1);
    const int64_t g = wrong_elements({.op = Collective::all_gather, .elements = 300}, comm);
    const int64_t s = wrong_elements({.op = Collective::send_recv, .elements = 300}, comm);
    const std::lock_guard lock(mutex);
    gathered[world.rank()] = g;
    sent[world.rank()] = s;
  });
  EXPECT_EQ(gathered, (std::map<int, int64_t>{{0, 0}, {1, 2}, {2, 0}}));
  EXPECT_EQ(sent, (std::map<int, int64_t>{{0, 0}, {1, 1}, {2, 0}}));
}

TEST(CommCases, ElementsOfAGatherKnowWhoseTheyAre) {
  const CommCase c{.op = Collective::all_gather, .elements = 10};
  EXPECT_EQ(comm_source(c, 0, 1, 3), 0);
  EXPECT_EQ(comm_source(c, 4, 1, 3), 1);
  EXPECT_EQ(comm_source(c, 9, 1, 3), 2);
  EXPECT_EQ(comm_source({.op = Collective::send_recv, .elements = 10}, 0, 0, 3), 2);
  EXPECT_EQ(comm_source({.op = Collective::all_reduce, .elements = 10}, 0, 0, 3), -1);
}

TEST(CommCases, SizesGoFromAKibTo64Mib) {
  EXPECT_EQ(comm_sizes(true).size(), 3u);
  EXPECT_EQ(comm_sizes(false).front(), 1 << 10);
  EXPECT_EQ(comm_sizes(false).back(), 64 << 20);
}

}  // namespace
}  // namespace hlat
