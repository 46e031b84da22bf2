// A group for tensors on a device, on top of a group for host memory: every operation fetches pieces into pinned memory, runs the inner
// group's operation on them and puts the results back. Sums are the inner group's, in its order and its arithmetic, so results are those
// of the host path bit by bit. Several ranks may share one device.
//
// Order. A call waits (the host does) for the device's work so far and for its own copies; on a CommQueue that happens in the queue's
// thread, after the work that was there when the operation was submitted, while the device goes on with other work.
// Pinned memory: one piece of kStagedPiece bytes and the inner group's staging, and a buffer for each message under way (reserve_messages).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/comm.h"
#include "tensor/copy_stream.h"

namespace hlat {

inline constexpr size_t kStagedPiece = size_t{4} << 20;

// Pinned bytes of a group of this size, and of its messages: what StagedComm takes and the dry run counts.
size_t staged_bytes(int size);
size_t staged_message_bytes(size_t bytes, int count);

class StagedComm final : public Comm, private Overlap {
 public:
  using MakeCopies = std::function<std::unique_ptr<CopyStream>()>;

  StagedComm(std::unique_ptr<Comm> inner, MakeCopies make_copies);
  ~StagedComm() override;

  std::unique_ptr<Comm> split(int color, int key, std::string name) override;
  Comm& host() override { return *inner_; }
  Summation summation() const override { return inner_->summation(); }
  void cancel() override { inner_->cancel(); }
  Overlap& overlap() override { return *this; }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override;
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override;
  void finish(uint64_t id) override;
  void do_all_reduce(Tensor t) override;
  void do_reduce_scatter(Tensor own, Tensor full) override;
  void do_all_gather(Tensor full, Tensor own) override;
  void do_broadcast(Tensor t, int root) override;
  void do_barrier() override { inner_->barrier(); }
  void do_copy(void* to, const void* from, int64_t bytes) override;
  void do_reserve(Region& region) override;
  void do_reserve_messages(size_t bytes, int count) override;

 private:
  uint64_t mark() override { return copies_->mark(); }
  void begin_overlap(uint64_t mark) override;
  void end_overlap() override { overlapped_ = false; }
  void await_device() override { copies_->await(copies_->mark()); }
  void hurry(bool on) override { inner_->overlap().hurry(on); }

  struct Message {
    size_t buffer = 0;
    Request request;
    void* to = nullptr;  // of the device; null: sent
    size_t bytes = 0;
    uint64_t mark = 0;  // after which `to` may be written
  };
  template <class Exchange>
  void by_pieces(const Tensor& full, const Exchange& exchange);
  void begin();  // the copies of a call come after the device's work so far
  size_t take_buffer(size_t bytes);
  std::byte* pinned(size_t bytes);

  MakeCopies make_copies_;
  std::unique_ptr<CopyStream> copies_;
  std::vector<std::byte*> pinned_;
  std::byte* piece_ = nullptr;
  Region inner_staging_;
  size_t buffer_bytes_ = 0;
  std::vector<std::byte*> buffers_;
  std::vector<bool> taken_;
  std::map<uint64_t, Message> messages_;
  uint64_t next_id_ = 1;
  bool overlapped_ = false;
  std::unique_ptr<Comm> inner_;  // last: ends first, and with it all use of the pinned memory
};

}  // namespace hlat
