// One rank of a group of any size that has no other ranks: the front checks and counts, nothing moves, nothing waits.
// The dry run gives one to each axis of a layout; what it counts is the traffic of the real step.
#pragma once

#include "comm/comm.h"
#include "comm/transport.h"

namespace hlat {

class NullComm final : public Comm {
 public:
  // transport: of the group it stands for.
  NullComm(int rank, int size, std::string name, Transport transport = Transport::host);
  bool real() const override { return false; }
  Summation summation() const override { return transport_ == Transport::nccl ? Summation::library : Summation::rank_order; }
  // A bug: it cannot know the other ranks' colors. Make a NullComm of the wanted rank and size.
  std::unique_ptr<Comm> split(int color, int key, std::string name) override;

 protected:
  uint64_t start_send(const void*, size_t, int, int) override { return 1; }
  uint64_t start_recv(void*, size_t, int, int) override { return 1; }
  void finish(uint64_t) override {}
  void do_reserve(Region& region) override;
  void do_reserve_messages(size_t bytes, int count) override;

 private:
  Transport transport_;
};

}  // namespace hlat
