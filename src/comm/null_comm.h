// One rank of a group of any size that has no other ranks: the front checks and counts, nothing moves, nothing waits.
// The dry run gives one to each axis of a layout; what it counts is the traffic of the real step.
#pragma once

#include <optional>

#include "comm/comm.h"
#include "comm/transport.h"
#include "trace/step_trace.h"

namespace hlat {

class NullComm final : public Comm {
 public:
  // transport: of the group it stands for.
  NullComm(int rank, int size, std::string name, Transport transport = Transport::host);
  bool real() const override { return false; }
  Summation summation() const override { return transport_ == Transport::nccl ? Summation::library : Summation::rank_order; }
  // A bug: it cannot know the other ranks' colors. Make a NullComm of the wanted rank and size.
  std::unique_ptr<Comm> split(int color, int key, std::string name) override;
  // From now on collectives and messages are written down, as those of this group (Axis); it must outlive this.
  void trace_to(StepTrace& trace, uint8_t group);
  bool traces() const override { return trace_ != nullptr; }
  Overlap& overlap() override;

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override;
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override;
  void finish(uint64_t id) override;
  void do_all_reduce(Tensor t) override { write_down(CommKind::all_reduce, t); }
  void do_reduce_scatter(Tensor /*own*/, Tensor full) override { write_down(CommKind::reduce_scatter, full); }
  void do_all_gather(Tensor full, Tensor /*own*/) override { write_down(CommKind::all_gather, full); }
  void do_broadcast(Tensor t, int root) override { write_down(CommKind::broadcast, t, root); }
  void do_reserve(Region& region) override;
  void do_reserve_messages(size_t bytes, int count) override;

 private:
  // A queue's operations are those between begin_overlap and end_overlap.
  class TracedOverlap final : public Overlap {
   public:
    TracedOverlap(StepTrace& trace, uint8_t group) : trace_(trace), group_(group) {}
    void begin_overlap(uint64_t /*mark*/) override { trace_.begin_queue(); }
    void end_overlap() override { trace_.end_queue(); }
    bool on_stream() const override { return true; }
    void join() override { trace_.join(group_); }

   private:
    StepTrace& trace_;
    uint8_t group_;
  };
  void write_down(CommKind kind, const Tensor& t, int peer = -1);

  Transport transport_;
  StepTrace* trace_ = nullptr;
  uint8_t group_ = 0;
  std::optional<TracedOverlap> traced_overlap_;
};

}  // namespace hlat
