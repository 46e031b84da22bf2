// Every collective as messages, once for all transports:
//
//   reduce_scatter  each rank gets the pieces of its own rows from all peers and sums them in rank order. Pieces are
//                   piece_of(size) bytes; the next ones are under way during a sum, in the other half of the staging.
//   all_reduce      small tensors: everybody sends all to everybody, one round. Else reduce_scatter by elements, then
//                   all_gather, both in place.
//   all_gather      own rows to every peer, theirs straight into their place. Bytes of host values, which are few: as Bruck does, in
//                   rounds d = 1, 2, 4, ... what a rank has so far to rank - d, as much from rank + d. barrier: the same, of nothing.
//   broadcast       binomial tree.
#include <algorithm>
#include <cstring>

#include "comm/comm.h"
#include "comm/shares.h"
#include "comm/sum.h"

namespace hlat {
namespace {

// Bytes per message of a sum: large enough to hide latency, small enough that large groups do not take much memory.
int64_t piece_of(int size) { return std::clamp<int64_t>((int64_t{4} << 20) / size / kSmallSum * kSmallSum, kSmallSum, 128 << 10); }

}  // namespace

size_t sum_staging(int size) { return static_cast<size_t>(2 * size * piece_of(size)); }

void Comm::do_reserve(Region& region) {
  staging_ = region.alloc(DType::f32, {static_cast<int64_t>(sum_staging(size_) / 4)}, name_ + " staging");
}

void Comm::do_copy(void* to, const void* from, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }

void Comm::do_all_reduce(Tensor t) {
  const Shares shares{.rows = t.numel(), .row_bytes = static_cast<int64_t>(size_of(t.dtype)), .size = size_};
  if (shares.total() <= kSmallSum) return sum_small(t);
  std::byte* mine = at(t.data, shares.begin(rank_));
  sum_shares(mine, t.data, t.dtype, shares);
  gather_shares(t.data, mine, shares);
}

void Comm::do_reduce_scatter(Tensor own, Tensor full) { sum_shares(own.data, full.data, full.dtype, Shares::of(full, size_)); }

void Comm::do_all_gather(Tensor full, Tensor own) { gather_shares(full.data, own.data, Shares::of(full, size_)); }

void Comm::do_broadcast(Tensor t, int root) { Comm::do_broadcast_bytes(t.data, t.bytes(), root); }

void Comm::do_broadcast_bytes(void* data, size_t bytes, int root) {
  const auto n = static_cast<int64_t>(bytes);
  if (rank_ != root) {
    const int relative = (rank_ - root + size_) % size_;
    const int parent = (rank_ - (relative & -relative) + size_) % size_;
    finish(start(false, data, n, parent));
  }
  std::vector<uint64_t> sends;
  for (const int child : broadcast_children(root)) sends.push_back(start(true, data, n, child));
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

int64_t Comm::broadcast_sends(size_t bytes, int root) const { return static_cast<int64_t>(bytes * broadcast_children(root).size()); }

void Comm::do_barrier() { Comm::do_all_gather_bytes(nullptr, 0); }

void Comm::do_all_gather_bytes(std::byte* all, size_t bytes) {
  const auto n = static_cast<int64_t>(bytes);
  std::vector<std::byte> found(bytes * static_cast<size_t>(size_));  // of this rank, the next, ... round the end
  std::copy_n(all + rank_ * n, n, found.begin());
  for (int distance = 1; distance < size_; distance *= 2) {
    const int64_t part = std::min(distance, size_ - distance) * n;
    const uint64_t received = start(false, found.data() + distance * n, part, (rank_ + distance) % size_);
    const uint64_t sent = start(true, found.data(), part, (rank_ - distance + size_) % size_);
    finish(received);
    finish(sent);
  }
  std::rotate_copy(found.begin(), found.end() - rank_ * n, found.end(), all);
}

std::byte* Comm::buffer(int64_t half, int peer) const { return at(staging_.data, (half * size_ + peer) * piece_of(size_)); }

uint64_t Comm::start(bool sends, const void* data, int64_t bytes, int peer) {
  const int tag = kUserTags + static_cast<int>(active_);
  traffic_.messages += sends ? 1 : 0;
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
      if (const int64_t n = piece_bytes(rank_, round); n > 0) received[round % 2].push_back(start(false, buffer(round % 2, from), n, from));
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
      terms[static_cast<size_t>(r)] = r == rank_ ? at(full, mine + round * piece) : buffer(round % 2, r);
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
  std::byte* place = at(full, shares.begin(rank_));
  if (n > 0 && place != own) std::memcpy(place, own, static_cast<size_t>(n));
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
    ids.push_back(start(false, buffer(0, from), bytes, from));
    ids.push_back(start(true, t.data, bytes, to));
    terms[static_cast<size_t>(from)] = buffer(0, from);
  }
  finish_all(ids);  // only then may t change
  sum_in_order(t.data, terms, t.numel(), t.dtype);
}

}  // namespace hlat
