// The front of communication: contract checks, traffic, and every collective as messages, once for all transports.
//
//   reduce_scatter  each rank gets the pieces of its own rows from all peers and sums them in rank order. Pieces are
//                   piece_of(size) bytes; the next ones are under way during a sum, in the other half of the staging.
//   all_reduce      small tensors: everybody sends all to everybody, one round. Else reduce_scatter by elements, then
//                   all_gather, both in place.
//   all_gather      own rows to every peer, theirs straight into their place.
//   broadcast       binomial tree. barrier: in round d = 1, 2, 4, ... a word to rank + d, from rank - d.
#include "comm/comm.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "comm/sum.h"

namespace hlat {
namespace {

constexpr int64_t kSmall = 4 << 10;  // bytes of a tensor that is summed in one round

// Bytes per message of a sum: large enough to hide latency, small enough that large groups do not take much memory.
int64_t piece_of(int size) { return std::clamp<int64_t>((int64_t{4} << 20) / size / kSmall * kSmall, kSmall, 128 << 10); }
int64_t staging_of(int size) { return 2 * size * piece_of(size); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::byte* at(void* data, int64_t offset) { return static_cast<std::byte*>(data) + offset; }
const std::byte* at(const void* data, int64_t offset) { return static_cast<const std::byte*>(data) + offset; }

void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from && to != nullptr) std::memcpy(to, from, static_cast<size_t>(bytes));
}

void check_dense(CommKind kind, const char* name, const Tensor& t) {
  HLAT_CHECK(t.defined() && t.is_contiguous(), "{}: {} is {}, expected a contiguous tensor", name_of(kind), name, t.str());
}

void check_sum(CommKind kind, const Tensor& t) { HLAT_CHECK(t.dtype != DType::i32, "{}: {} cannot be summed", name_of(kind), t.str()); }

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
  Call(Comm& comm, CommKind kind) : cost_(comm.traffic_.kind[static_cast<size_t>(kind)]), start_(now()) { comm.active_ = kind; }
  Call(Comm& comm, CommKind kind, int64_t bytes) : Call(comm, kind) {
    ++cost_.calls;
    cost_.bytes += static_cast<double>(bytes);
  }
  ~Call() { cost_.seconds += now() - start_; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  CommCost& cost_;
  double start_;
};

struct Comm::Shares {
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int size = 1;

  int64_t begin(int rank) const { return part_of(rows, rank, size).begin * row_bytes; }
  int64_t bytes(int rank) const { return part_of(rows, rank, size).count * row_bytes; }
  int64_t total() const { return rows * row_bytes; }
};

std::string Comm::where() const { return fmt::format("{} {} on rank {} of {}", name_, name_of(active_), rank_, size_); }

void Comm::reserve(Region& region) {
  HLAT_CHECK(!staging_.defined(), "{}: staging is reserved once", name_);
  if (size_ > 1) staging_ = region.alloc(DType::f32, {staging_of(size_) / 4}, name_ + " staging");
}

void Comm::all_reduce(Tensor t) {
  constexpr CommKind kind = CommKind::all_reduce;
  check_dense(kind, "the tensor", t);
  check_sum(kind, t);
  if (size_ == 1) return;
  const auto element = static_cast<int64_t>(size_of(t.dtype));
  const Shares shares{.rows = t.numel(), .row_bytes = element, .size = size_};
  const bool small = shares.total() <= kSmall;
  const int64_t own = shares.bytes(rank_), others = size_ - 1;
  const Call call(*this, kind, small ? others * shares.total() : shares.total() - own + others * own);
  HLAT_CHECK(staging_.defined(), "{}: reserve() comes before a sum", where());
  if (!moves(t)) return;
  if (small) return sum_small(t);
  std::byte* mine = at(t.data, shares.begin(rank_));
  sum_shares(mine, t.data, t.dtype, shares);
  gather_shares(t.data, mine, shares);
}

void Comm::reduce_scatter(Tensor own, Tensor full) {
  constexpr CommKind kind = CommKind::reduce_scatter;
  check_dense(kind, "own", own);
  check_dense(kind, "full", full);
  check_sum(kind, full);
  const Shares shares = shares_of(full);
  check_own(own, full, shares);
  if (size_ == 1) return copy(own.data, full.data, shares.total());
  const Call call(*this, kind, shares.total() - shares.bytes(rank_));
  HLAT_CHECK(staging_.defined(), "{}: reserve() comes before a sum", where());
  if (moves(own) && moves(full)) sum_shares(own.data, full.data, full.dtype, shares);
}

void Comm::all_gather(Tensor full, Tensor own) {
  constexpr CommKind kind = CommKind::all_gather;
  check_dense(kind, "full", full);
  check_dense(kind, "own", own);
  const Shares shares = shares_of(full);
  check_own(own, full, shares);
  if (size_ == 1) return copy(full.data, own.data, shares.total());
  const Call call(*this, kind, shares.bytes(rank_) * (size_ - 1));
  if (moves(own) && moves(full)) gather_shares(full.data, own.data, shares);
}

void Comm::broadcast(Tensor t, int root) {
  constexpr CommKind kind = CommKind::broadcast;
  check_dense(kind, "the tensor", t);
  HLAT_CHECK(0 <= root && root < size_, "{} broadcast: root {} of {}", name_, root, size_);
  if (size_ == 1) return;
  const std::vector<int> children = broadcast_children(root);
  const auto bytes = static_cast<int64_t>(t.bytes());
  const Call call(*this, kind, bytes * static_cast<int64_t>(children.size()));
  if (!moves(t) || bytes == 0) return;
  if (rank_ != root) {
    const int relative = (rank_ - root + size_) % size_;
    const int parent = (rank_ - (relative & -relative) + size_) % size_;
    finish(start(false, t.data, bytes, parent));
  }
  std::vector<uint64_t> sends;
  for (const int child : children) sends.push_back(start(true, t.data, bytes, child));
  finish_all(sends);
}

// In a binomial tree rank r (counted from the root) has the children r + 2^k for all 2^k below r's lowest set bit.
std::vector<int> Comm::broadcast_children(int root) const {
  const int relative = (rank_ - root + size_) % size_;
  std::vector<int> children;
  for (int step = 1; relative + step < size_ && (relative & step) == 0; step *= 2) {
    children.insert(children.begin(), (rank_ + step) % size_);  // the largest subtree first
  }
  return children;
}

void Comm::barrier() {
  if (size_ == 1) return;
  const Call call(*this, CommKind::barrier, 0);
  if (!real()) return;
  for (int distance = 1; distance < size_; distance *= 2) {
    const uint64_t received = start(false, nullptr, 0, (rank_ - distance + size_) % size_);
    const uint64_t sent = start(true, nullptr, 0, (rank_ + distance) % size_);
    finish(received);
    finish(sent);
  }
}

// The transport's id with one bit more, which says whose time the wait is: nothing to wait for is 0.
Request Comm::send(Tensor t, int peer, int tag) {
  check_dense(CommKind::send, "the tensor", t);
  HLAT_CHECK(0 <= peer && peer < size_ && peer != rank_ && 0 <= tag && tag < kUserTags, "{} send: rank {} to {} of {}, tag {}", name_,
             rank_, peer, size_, tag);
  const Call call(*this, CommKind::send, static_cast<int64_t>(t.bytes()));
  if (!moves(t)) return {};
  return {start_send(t.data, t.bytes(), peer, tag) << 1};
}

Request Comm::recv(Tensor t, int peer, int tag) {
  check_dense(CommKind::recv, "the tensor", t);
  HLAT_CHECK(0 <= peer && peer < size_ && peer != rank_ && 0 <= tag && tag < kUserTags, "{} recv: rank {} from {} of {}, tag {}", name_,
             rank_, peer, size_, tag);
  const Call call(*this, CommKind::recv, static_cast<int64_t>(t.bytes()));
  if (!moves(t)) return {};
  return {(start_recv(t.data, t.bytes(), peer, tag) << 1) | 1};
}

void Comm::wait(Request& request) {
  const uint64_t id = std::exchange(request.id, 0);
  if (id == 0) return;
  const Call call(*this, (id & 1) != 0 ? CommKind::recv : CommKind::send);
  finish(id >> 1);
}

Comm::Shares Comm::shares_of(const Tensor& full) const {
  int64_t row = static_cast<int64_t>(size_of(full.dtype));
  for (int i = 1; i < full.rank(); ++i) row *= full.dim(i);
  return {.rows = full.dim(0), .row_bytes = row, .size = size_};
}

void Comm::check_own(const Tensor& own, const Tensor& full, const Shares& shares) const {
  Shape expected = full.shape;
  expected.dim[0] = part_of(full.dim(0), rank_, size_).count;
  HLAT_CHECK(own.dtype == full.dtype && own.shape == expected, "{}: own is {}, rank {} of {} has {} of {}", name_, own.str(), rank_, size_,
             expected.str(), full.str());
  if (own.data == nullptr || full.data == nullptr) return;
  const std::byte* first = at(full.data, 0);
  const std::byte* mine = at(own.data, 0);
  const bool apart = mine + own.bytes() <= first || mine >= first + shares.total();
  HLAT_CHECK(own.bytes() == 0 || apart || mine == first + shares.begin(rank_), "{}: own {} overlaps full {} but is not its rows", name_,
             own.str(), full.str());
}

// Whether data is to move. Only a null group may be given tensors without memory.
bool Comm::moves(const Tensor& t) const {
  if (!real()) return false;
  HLAT_CHECK(t.data != nullptr || t.bytes() == 0, "{}: {} has no memory", where(), t.str());
  return true;
}

std::byte* Comm::slot(int64_t half, int peer) const { return at(staging_.data, (half * size_ + peer) * piece_of(size_)); }

uint64_t Comm::start(bool sends, const void* data, int64_t bytes, int peer) {
  const int tag = kUserTags + static_cast<int>(active_);
  return sends ? start_send(data, static_cast<size_t>(bytes), peer, tag)
               : start_recv(const_cast<void*>(data), static_cast<size_t>(bytes), peer, tag);
}

void Comm::finish_all(std::vector<uint64_t>& ids) {
  for (const uint64_t id : ids) finish(id);
  ids.clear();
}

void Comm::sum_shares(void* own, const void* full, DType dtype, const Shares& shares) {
  const int64_t mine = shares.begin(rank_), element = static_cast<int64_t>(size_of(dtype));
  const int64_t piece = piece_of(size_);
  const int64_t rounds = (shares.bytes(0) + piece - 1) / piece;  // rank 0 never has less than another
  const auto piece_bytes = [&](int rank, int64_t round) { return std::clamp<int64_t>(shares.bytes(rank) - round * piece, 0, piece); };
  std::array<std::vector<uint64_t>, 2> received, sent;
  const auto post = [&](int64_t round) {
    for (int step = 1; step < size_; ++step) {  // every rank begins with another peer
      const int from = (rank_ - step + size_) % size_, to = (rank_ + step) % size_;
      if (const int64_t n = piece_bytes(rank_, round); n > 0) received[round % 2].push_back(start(false, slot(round % 2, from), n, from));
      if (const int64_t n = piece_bytes(to, round); n > 0) {
        sent[round % 2].push_back(start(true, at(full, shares.begin(to) + round * piece), n, to));
      }
    }
  };
  std::vector<const void*> terms(static_cast<size_t>(size_));
  if (rounds > 0) post(0);
  for (int64_t round = 0; round < rounds; ++round) {
    if (round + 1 < rounds) post(round + 1);
    finish_all(received[round % 2]);
    for (int r = 0; r < size_; ++r) {
      terms[static_cast<size_t>(r)] = r == rank_ ? at(full, mine + round * piece) : slot(round % 2, r);
    }
    if (const int64_t n = piece_bytes(rank_, round); n > 0) sum_in_order(at(own, round * piece), terms, n / element, dtype);
    finish_all(sent[round % 2]);
  }
}

void Comm::gather_shares(void* full, const void* own, const Shares& shares) {
  std::vector<uint64_t> ids;
  const int64_t n = shares.bytes(rank_);
  for (int step = 1; step < size_; ++step) {
    const int from = (rank_ - step + size_) % size_, to = (rank_ + step) % size_;
    if (shares.bytes(from) > 0) ids.push_back(start(false, at(full, shares.begin(from)), shares.bytes(from), from));
    if (n > 0) ids.push_back(start(true, own, n, to));
  }
  copy(at(full, shares.begin(rank_)), own, n);
  finish_all(ids);
}

void Comm::sum_small(const Tensor& t) {
  const auto bytes = static_cast<int64_t>(t.bytes());
  if (bytes == 0) return;
  std::vector<uint64_t> ids;
  std::vector<const void*> terms(static_cast<size_t>(size_));
  terms[static_cast<size_t>(rank_)] = t.data;
  for (int step = 1; step < size_; ++step) {
    const int from = (rank_ - step + size_) % size_, to = (rank_ + step) % size_;
    ids.push_back(start(false, slot(0, from), bytes, from));
    ids.push_back(start(true, t.data, bytes, to));
    terms[static_cast<size_t>(from)] = slot(0, from);
  }
  finish_all(ids);  // only then may t change
  sum_in_order(t.data, terms, t.numel(), t.dtype);
}

}  // namespace hlat
