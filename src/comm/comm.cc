// The front of communication: contract checks and traffic, once for all groups. What is counted is what the collectives built from
// messages send (comm_messages.cc).
#include "comm/comm.h"

#include <exception>

#include "base/machine.h"
#include "comm/shares.h"

namespace hlat {
namespace {

void check_dense(CommKind kind, const char* name, const Tensor& t) {
  HLAT_CHECK(t.defined() && t.is_contiguous(), "{}: {} is {}, expected a contiguous tensor", name_of(kind), name, t.str());
}

void check_sum(CommKind kind, const Tensor& t) {
  HLAT_CHECK(t.dtype != DType::i32 && !is_fp8(t.dtype), "{}: {} cannot be summed", name_of(kind), t.str());
}

}  // namespace

std::string_view name_of(CommKind k) {
  constexpr std::array<std::string_view, kCommKinds> names = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                              "barrier",    "send",           "recv"};
  static_assert(static_cast<int>(CommKind::recv) + 1 == kCommKinds && !names.back().empty());
  return names[static_cast<size_t>(k)];
}

double Traffic::bytes_sent() const {
  double sum = 0;
  for (const CommCost& c : kind) sum += c.bytes;
  return sum - (*this)[CommKind::recv].bytes;
}

double Traffic::seconds() const {
  double sum = 0;
  for (const CommCost& c : kind) sum += c.seconds;
  return sum;
}

// One call, or the wait for a message: what it is, its cost and, when it ends, its time.
class Comm::Call {
 public:
  struct Peer {
    int rank = -1;
  };
  Call(Comm& comm, CommKind kind, Peer peer) : comm_(comm), cost_(comm.traffic_.kind[static_cast<size_t>(kind)]), start_(now_s()) {
    comm.active_ = kind;
    if (comm.flight_ != nullptr) comm.flight_->enter(comm.flight_group_, static_cast<uint8_t>(kind), peer.rank);
  }
  Call(Comm& comm, CommKind kind, int64_t bytes, int peer = -1) : Call(comm, kind, Peer{peer}) {
    ++cost_.calls;
    cost_.bytes += static_cast<double>(bytes);
  }
  // A call that threw stays open in the record: it says where this rank was.
  ~Call() {
    cost_.seconds += now_s() - start_;
    if (comm_.flight_ != nullptr && std::uncaught_exceptions() == exceptions_) comm_.flight_->leave(comm_.flight_group_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Comm& comm_;
  CommCost& cost_;
  double start_;
  int exceptions_ = std::uncaught_exceptions();
};

std::string Comm::where() const { return fmt::format("{} {} on rank {} of {}", name_, name_of(active_), rank_, size_); }

void Comm::record_to(FlightRecorder& flight, uint64_t id) {
  HLAT_CHECK(flight_ == nullptr, "{}: calls are recorded already", name_);
  if (size_ == 1) return;
  flight_ = &flight;
  flight_group_ = flight.add_group(name_, id, rank_, size_, overlap().on_stream());
  if (Comm& inner = host(); &inner != this) inner.record_to(flight, ~id);
}

void Comm::note_queued(bool on) {
  if (flight_ != nullptr) flight_->queued(flight_group_, on);
  if (Comm& inner = host(); &inner != this) inner.note_queued(on);
}

void Comm::note_awaited(bool on) {
  if (flight_ != nullptr) flight_->awaited(flight_group_, on);
  if (Comm& inner = host(); &inner != this) inner.note_awaited(on);
}

void Comm::reserve(Region& region) {
  if (size_ == 1) return;
  HLAT_CHECK(!reserved_, "{}: staging is reserved once", name_);
  reserved_ = true;
  do_reserve(region);
}

void Comm::reserve_messages(size_t bytes, int count) {
  if (size_ > 1) do_reserve_messages(bytes, count);
}

void Comm::all_reduce(Tensor t) {
  constexpr CommKind kind = CommKind::all_reduce;
  check_dense(kind, "the tensor", t);
  check_sum(kind, t);
  if (size_ == 1) return;
  const auto element = static_cast<int64_t>(size_of(t.dtype));
  const Shares shares{.rows = t.numel(), .row_bytes = element, .size = size_};
  const bool small = shares.total() <= kSmallSum;
  const int64_t own = shares.bytes(rank_), others = size_ - 1;
  const Call call(*this, kind, small ? others * shares.total() : shares.total() - own + others * own);
  HLAT_CHECK(reserved_, "{}: reserve() comes before a sum", where());
  if (moves(t)) do_all_reduce(t);
}

void Comm::reduce_scatter(Tensor own, Tensor full) {
  constexpr CommKind kind = CommKind::reduce_scatter;
  check_dense(kind, "own", own);
  check_dense(kind, "full", full);
  check_sum(kind, full);
  const Shares shares = Shares::of(full, size_);
  check_own(own, full, shares);
  if (size_ == 1) return copy_alone(own, full);
  const Call call(*this, kind, shares.total() - shares.bytes(rank_));
  HLAT_CHECK(reserved_, "{}: reserve() comes before a sum", where());
  if (moves(own) && moves(full)) do_reduce_scatter(own, full);
}

void Comm::all_gather(Tensor full, Tensor own) {
  constexpr CommKind kind = CommKind::all_gather;
  check_dense(kind, "full", full);
  check_dense(kind, "own", own);
  const Shares shares = Shares::of(full, size_);
  check_own(own, full, shares);
  if (size_ == 1) return copy_alone(full, own);
  const Call call(*this, kind, shares.bytes(rank_) * (size_ - 1));
  if (moves(own) && moves(full)) do_all_gather(full, own);
}

void Comm::broadcast(Tensor t, int root) {
  check_dense(CommKind::broadcast, "the tensor", t);
  check_root(root);
  if (size_ == 1) return;
  const Call call(*this, CommKind::broadcast, broadcast_sends(t.bytes(), root));
  if (moves(t) && t.bytes() > 0) do_broadcast(t, root);
}

void Comm::broadcast_bytes(void* data, size_t bytes, int root) {
  check_root(root);
  if (size_ == 1) return;
  const Call call(*this, CommKind::broadcast, broadcast_sends(bytes, root));
  if (real()) do_broadcast_bytes(data, bytes, root);
}

void Comm::all_gather_bytes(void* all, size_t bytes) {
  if (size_ == 1) return;
  const Call call(*this, CommKind::all_gather, static_cast<int64_t>(bytes) * (size_ - 1));
  if (real()) do_all_gather_bytes(static_cast<std::byte*>(all), bytes);
}

void Comm::barrier() {
  if (size_ == 1) return;
  const Call call(*this, CommKind::barrier, 0);
  if (real()) do_barrier();
}

// The transport's id with one bit more, which says whose time the wait is: nothing to wait for is 0.
Request Comm::send(Tensor t, int peer, int tag) {
  check_dense(CommKind::send, "the tensor", t);
  HLAT_CHECK(0 <= peer && peer < size_ && peer != rank_ && 0 <= tag && tag < kUserTags, "{} send: rank {} to {} of {}, tag {}", name_,
             rank_, peer, size_, tag);
  const Call call(*this, CommKind::send, static_cast<int64_t>(t.bytes()), peer);
  if (!moves(t)) return {};
  ++traffic_.messages;
  return {start_send(t.data, t.bytes(), peer, tag) << 1, peer};
}

Request Comm::recv(Tensor t, int peer, int tag) {
  check_dense(CommKind::recv, "the tensor", t);
  HLAT_CHECK(0 <= peer && peer < size_ && peer != rank_ && 0 <= tag && tag < kUserTags, "{} recv: rank {} from {} of {}, tag {}", name_,
             rank_, peer, size_, tag);
  const Call call(*this, CommKind::recv, static_cast<int64_t>(t.bytes()), peer);
  if (!moves(t)) return {};
  return {(start_recv(t.data, t.bytes(), peer, tag) << 1) | 1, peer};
}

void Comm::wait(Request& request) {
  const uint64_t id = std::exchange(request.id, 0);
  if (id == 0) return;
  const Call call(*this, (id & 1) != 0 ? CommKind::recv : CommKind::send, Call::Peer{request.peer});
  finish(id >> 1);
}

void Comm::check_root(int root) const { HLAT_CHECK(0 <= root && root < size_, "{} broadcast: root {} of {}", name_, root, size_); }

void Comm::check_own(const Tensor& own, const Tensor& full, const Shares& shares) const {
  Shape expected = full.shape;
  expected.dim[0] = part_of(full.dim(0), rank_, size_).count;
  HLAT_CHECK(own.dtype == full.dtype && own.shape == expected, "{}: own is {}, rank {} of {} has {} of {}", name_, own.str(), rank_, size_,
             expected.str(), full.str());
  if (own.data == nullptr || full.data == nullptr) return;
  const std::byte* first = full.as<std::byte>();
  const std::byte* mine = own.as<std::byte>();
  const bool apart = mine + own.bytes() <= first || mine >= first + shares.total();
  HLAT_CHECK(own.bytes() == 0 || apart || mine == first + shares.begin(rank_), "{}: own {} overlaps full {} but is not its rows", name_,
             own.str(), full.str());
}

// Whether data is to move. Only a null group may be given tensors without memory.
bool Comm::moves(const Tensor& t) const {
  if (!real()) return traces();
  HLAT_CHECK(t.data != nullptr || t.bytes() == 0, "{}: {} has no memory", where(), t.str());
  return !loses_;
}

void Comm::copy_alone(const Tensor& to, const Tensor& from) {
  const auto bytes = static_cast<int64_t>(from.bytes());
  if (bytes > 0 && to.data != from.data && to.data != nullptr) do_copy(to.data, from.data, bytes);
}

}  // namespace hlat
