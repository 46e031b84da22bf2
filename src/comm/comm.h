// Communication of a group of ranks. The front checks the contract, counts traffic, and builds every collective from
// messages, in one fixed order: sums are taken in rank order in f32 (f64 for f64) and rounded once, so every rank gets
// the same bits, in every run. A transport for host memory only moves messages; one for tensors on a device may have collectives,
// and with them an order of sums, of its own. Calls of one Comm come from one thread at a time, in the same order on all its ranks.
//
// Staging: sums need room for the messages of the peers. It is reserved once (reserve), from the comm region or, where
// that lies on a device, from host memory: its size is a function of the group's size alone. A group of one checks the
// contract, counts nothing and moves nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/part.h"
#include "flight/flight_recorder.h"
#include "tensor/region.h"
#include "tensor/tensor.h"

namespace hlat {

enum class CommKind : uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, barrier, send, recv };
inline constexpr int kCommKinds = 7;
std::string_view name_of(CommKind k);

struct CommCost {
  int64_t calls = 0;
  double bytes = 0;    // sent by this rank (received, for recv)
  double seconds = 0;  // inside calls, waiting included
};

struct Traffic {
  std::array<CommCost, kCommKinds> kind{};
  int64_t messages = 0;  // that this rank sent; those inside a library's own collectives are not seen
  const CommCost& operator[](CommKind k) const { return kind[static_cast<size_t>(k)]; }
  double bytes_sent() const;
  double seconds() const;
};

// Tags of send and recv are below this; those above belong to the collectives and the transports.
inline constexpr int kUserTags = 1 << 20;
// Tags [k * kChannelTags, (k + 1) * kChannelTags) are channel k. Between two ranks, messages of one channel are received in the order in
// which they were sent: a transport may know no tags.
inline constexpr int kChannelTags = kUserTags / 2;

// Bytes of staging that the sums of a group of this size need.
size_t sum_staging(int size);

// A message under way. Its tensor must stay as it is until wait() returned. Default: nothing to wait for.
struct Request {
  uint64_t id = 0;
  int peer = -1;
};

// How operations of one group overlap with a computation, as a queue of them (comm_queue.h) wants it. A group's plain call starts after the
// device's work so far, and later work of the device sees its results. Operations between begin_overlap and end_overlap start after a mark
// that was taken when they were submitted, and work that the device was given since goes on. The default is that of tensors in host memory:
// there is no device's work to wait for. The thread that runs the operations calls begin_overlap and end_overlap; the one that submits them
// and gives the device its work calls the others, at any time.
class Overlap {
 public:
  Overlap() = default;
  virtual ~Overlap() = default;
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  virtual uint64_t mark() { return 0; }  // a point in the device's work: all that it was given so far
  virtual void begin_overlap(uint64_t /*mark*/) {}
  virtual void end_overlap() {}
  // Returns when the device has done its work so far: to tell waiting for it from waiting for peers.
  virtual void await_device() {}
  // Whether calls only put work on a stream and return; then results are seen by the device's later work only after join().
  virtual bool on_stream() const { return false; }
  virtual void join() {}
  // Whether somebody waits for the results (at first), or a computation that they overlap with needs the core.
  virtual void hurry(bool /*on*/) {}
};

// How a group takes its sums, which decides what their bits depend on and how far they may be from the exact sum.
enum class Summation : uint8_t {
  rank_order,  // in f32 (f64 for f64), one rank after the other, rounded once: equal terms have equal sums in every group
  library,     // in an order of its own, which may differ between groups, rounded to the tensor's type at each addition
};

struct Shares;

class Comm {
 public:
  virtual ~Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }  // of the axis, for messages: "tp", "dp"

  // Room for the sums, once, before the first of them. A group of one needs none.
  void reserve(Region& region);
  // Room for `count` messages of up to `bytes` each under way at a time, once, before the first; of use to groups that copy them.
  void reserve_messages(size_t bytes, int count);
  size_t host_bytes() const { return host_bytes_; }  // what both took of the host's memory, outside regions

  // t = sum over ranks of t; the same bits on every rank. f32, bf16, f64.
  void all_reduce(Tensor t);
  // Rows (first dimension) of `full` are shared by part_of(rows, rank, size). own = this rank's rows of the sum of all
  // ranks' `full`. own may be those rows of full; full is otherwise left as it was.
  void reduce_scatter(Tensor own, Tensor full);
  // full = every rank's own rows, in rank order. own may lie in its place in full already. Any dtype.
  void all_gather(Tensor full, Tensor own);
  void broadcast(Tensor t, int root);
  void barrier();

  // Small values of the host, O(log size) messages for each rank; for use through host_exchange.h. all: `bytes` of each rank, in rank
  // order, this rank's in their place.
  void all_gather_bytes(void* all, size_t bytes);
  void broadcast_bytes(void* data, size_t bytes, int root);

  // Messages. A pair of ranks may use several tags at a time; messages of one tag arrive in the order they were sent.
  Request send(Tensor t, int peer, int tag);
  Request recv(Tensor t, int peer, int tag);
  void wait(Request& request);  // returns when the tensor may be used again; request becomes the default

  // Ranks with the same color form a group, ordered by key. Collective. Never null: a group of one is a Comm too.
  virtual std::unique_ptr<Comm> split(int color, int key, std::string name) = 0;

  virtual Summation summation() const { return Summation::rank_order; }
  // False for a group without peers (null_comm.h): the front checks and counts, and moves nothing.
  virtual bool real() const { return true; }
  // A null group whose bodies are called all the same, with tensors without memory: they write down what is asked of them.
  virtual bool traces() const { return false; }
  // The same ranks for tensors in host memory: this group itself unless its tensors lie on a device.
  virtual Comm& host() { return *this; }
  // Makes the links that messages between neighbours need, on channel 0 from each rank to the next, on channel 1 to the one before,
  // both round the end. Collective.
  virtual void open_ring() {}
  // From any thread: a call of this rank that waits, and every later one, throws. For the way out after an error.
  virtual void cancel() {}
  // Error when an operation that no call waited for has failed.
  virtual void check() {}
  // From now on this rank takes no part in moving tensors here: its peers wait. A planted fault (fault/injector.h).
  void lose_messages() { loses_ = true; }
  // For a queue of operations; the default is for host memory.
  virtual Overlap& overlap() { return no_overlap_; }

  // From now on calls are recorded, as those of the group with this id (FlightRecorder::add_group), and those of host() as a group of
  // their own. Once; it must outlive this.
  void record_to(FlightRecorder& flight, uint64_t id);
  // For that record, by a queue of operations: its thread calls from now on; and whether somebody waits for it.
  void note_queued(bool on);
  void note_awaited(bool on);

  const Traffic& traffic() const { return traffic_; }
  void reset_traffic() { traffic_ = {}; }

 protected:
  Comm(int rank, int size, std::string name) : rank_(rank), size_(size), name_(std::move(name)) {}

  // Contiguous bytes, maybe none. Both return at once, with an id that is not 0. Sizes are the same on both sides.
  virtual uint64_t start_send(const void* data, size_t bytes, int peer, int tag) = 0;
  virtual uint64_t start_recv(void* data, size_t bytes, int peer, int tag) = 0;
  // Blocks until the message is done. An Error when a peer has failed, or after the time limit, with op, axis and peer.
  virtual void finish(uint64_t id) = 0;

  // The bodies of the calls, of groups with peers and for tensors with memory. The defaults are built from messages on host memory.
  virtual void do_all_reduce(Tensor t);
  virtual void do_reduce_scatter(Tensor own, Tensor full);
  virtual void do_all_gather(Tensor full, Tensor own);
  virtual void do_broadcast(Tensor t, int root);
  virtual void do_barrier();
  virtual void do_all_gather_bytes(std::byte* all, size_t bytes);
  virtual void do_broadcast_bytes(void* data, size_t bytes, int root);
  virtual void do_copy(void* to, const void* from, int64_t bytes);  // within this rank
  virtual void do_reserve(Region& region);                          // of a group with peers
  virtual void do_reserve_messages(size_t /*bytes*/, int /*count*/) {}
  void add_host_bytes(size_t bytes) { host_bytes_ += bytes; }

  std::string where() const;  // for messages: "tp all_reduce on rank 1 of 4"
  // For the flight recorder: a call of a transport's own that all ranks of the group take part in, as a barrier.
  void record_enter() {
    if (flight_ != nullptr) flight_->enter(flight_group_, static_cast<uint8_t>(CommKind::barrier), -1);
  }
  void record_leave() {
    if (flight_ != nullptr) flight_->leave(flight_group_);
  }
  // For the flight recorder: whom the call under way waits for, and that a message it waited for has come.
  void note_peer(int peer) {
    if (flight_ != nullptr) flight_->waits_for(flight_group_, peer);
  }
  void note_message() {
    if (flight_ != nullptr) flight_->beat();
  }

 private:
  class Call;

  void check_own(const Tensor& own, const Tensor& full, const Shares& shares) const;
  bool moves(const Tensor& t) const;
  void copy_alone(const Tensor& to, const Tensor& from);
  void check_root(int root) const;
  std::byte* buffer(int64_t half, int peer) const;
  uint64_t start(bool sends, const void* data, int64_t bytes, int peer);
  void finish_all(std::vector<uint64_t>& ids);
  void sum_shares(void* own, const void* full, DType dtype, const Shares& shares);
  void gather_shares(void* full, const void* own, const Shares& shares);
  void sum_small(const Tensor& t);
  std::vector<int> broadcast_children(int root) const;
  int64_t broadcast_sends(size_t bytes, int root) const;

  int rank_;
  int size_;
  std::string name_;
  Overlap no_overlap_;
  Traffic traffic_;
  bool reserved_ = false;
  bool loses_ = false;
  size_t host_bytes_ = 0;
  Tensor staging_;
  CommKind active_ = CommKind::barrier;  // of the call under way
  FlightRecorder* flight_ = nullptr;
  int flight_group_ = -1;
};

}  // namespace hlat
