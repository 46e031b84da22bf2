#include "comm/staged_comm.h"

#include <algorithm>

#include "comm/shares.h"

namespace hlat {
namespace {

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Any contiguous bytes as a tensor of the inner group.
Tensor raw_bytes(std::byte* data, size_t bytes) { return Tensor::contiguous(data, DType::f8e4m3, {static_cast<int64_t>(bytes)}); }

}  // namespace

size_t staged_bytes(int size) { return size > 1 ? kStagedPiece + aligned(sum_staging(size)) : 0; }

size_t staged_message_bytes(size_t bytes, int count) { return aligned(bytes) * static_cast<size_t>(count); }

StagedComm::StagedComm(std::unique_ptr<Comm> inner, MakeCopies make_copies)
    : Comm(inner->rank(), inner->size(), inner->name()),
      make_copies_(std::move(make_copies)),
      copies_(make_copies_()),
      inner_(std::move(inner)) {}

StagedComm::~StagedComm() {
  inner_.reset();
  for (std::byte* p : pinned_) copies_->free_pinned(p);
}

std::unique_ptr<Comm> StagedComm::split(int color, int key, std::string name) {
  return std::make_unique<StagedComm>(inner_->split(color, key, std::move(name)), make_copies_);
}

std::byte* StagedComm::pinned(size_t bytes) {
  pinned_.push_back(copies_->allocate_pinned(bytes));
  add_host_bytes(bytes);
  return pinned_.back();
}

void StagedComm::do_reserve(Region& /*region*/) {
  const size_t staging = staged_bytes(size()) - kStagedPiece;
  piece_ = pinned(kStagedPiece);
  inner_staging_ = Region(Purpose::comm, pinned(staging), staging);
  inner_->reserve(inner_staging_);
}

void StagedComm::do_reserve_messages(size_t bytes, int count) {
  HLAT_CHECK(buffers_.empty(), "{}: room for messages is reserved once", name());
  buffer_bytes_ = staged_message_bytes(bytes, 1);
  for (int i = 0; i < count; ++i) buffers_.push_back(pinned(buffer_bytes_));
  taken_.resize(buffers_.size());
}

void StagedComm::begin() {
  if (!overlapped_) copies_->wait_for(copies_->mark());
}

void StagedComm::begin_overlap(uint64_t mark) {
  copies_->await(mark);
  overlapped_ = true;
}

void StagedComm::do_copy(void* to, const void* from, int64_t bytes) {
  begin();
  copies_->copy(to, from, static_cast<size_t>(bytes));
  copies_->finish();
}

void StagedComm::do_all_reduce(Tensor t) {
  begin();
  const auto element = static_cast<int64_t>(size_of(t.dtype)), count = static_cast<int64_t>(kStagedPiece) / element;
  for (int64_t first = 0; first < t.numel(); first += count) {
    const Tensor host = Tensor::contiguous(piece_, t.dtype, {std::min(count, t.numel() - first)});
    std::byte* place = at(t.data, first * element);
    copies_->fetch(host.data, place, host.bytes());
    copies_->finish();
    inner_->all_reduce(host);
    copies_->put(place, host.data, host.bytes());
  }
  copies_->finish();
}

void StagedComm::do_broadcast(Tensor t, int root) {
  begin();
  for (size_t first = 0; first < t.bytes(); first += kStagedPiece) {
    const Tensor host = raw_bytes(piece_, std::min(kStagedPiece, t.bytes() - first));
    std::byte* place = at(t.data, static_cast<int64_t>(first));
    if (rank() == root) copies_->fetch(host.data, place, host.bytes());
    copies_->finish();  // elsewhere: the last piece has left the buffer
    inner_->broadcast(host, root);
    if (rank() != root) copies_->put(place, host.data, host.bytes());
  }
  copies_->finish();
}

// Cuts a tensor whose rows are shared into pieces of which every rank has the same rows of its share, and of long rows the same part.
// Without their last rows the shares are equal, so the rows of a piece are again shared by part_of and the inner group can work on it.
// exchange(piece, place) gets the piece in pinned memory and where each rank's rows of it lie in `full`, as offset and bytes.
template <class Exchange>
void StagedComm::by_pieces(const Tensor& full, const Exchange& exchange) {
  const auto element = static_cast<int64_t>(size_of(full.dtype)), budget = static_cast<int64_t>(kStagedPiece) / element / size();
  const Shares shares = Shares::of(full, size());
  const int64_t width = shares.row_bytes / element;
  if (shares.total() == 0) return;
  HLAT_CHECK(budget > 0, "{}: {} ranks", name(), size());
  const int64_t columns = std::min(width, budget), height = budget / columns, rows = part_of(shares.rows, 0, size()).count;
  const auto rows_of = [&](int rank, int64_t row) {
    return std::clamp<int64_t>(part_of(shares.rows, rank, size()).count - row, 0, height);
  };
  for (int64_t row = 0; row < rows; row += height)
    for (int64_t column = 0; column < width; column += columns) {
      const int64_t wide = std::min(columns, width - column);
      HLAT_CHECK(wide == width || height == 1, "{}: a piece of {} rows and {} of {} columns", name(), height, wide, width);
      int64_t total = 0;
      for (int r = 0; r < size(); ++r) total += rows_of(r, row);
      const auto place = [&](int rank) {
        const int64_t n = rows_of(rank, row) * wide * element;
        return Part{.begin = shares.begin(rank) + row * shares.row_bytes + column * element, .count = n};
      };
      exchange(Tensor::contiguous(piece_, full.dtype, {total, wide}), place);
    }
}

void StagedComm::do_reduce_scatter(Tensor own, Tensor full) {
  begin();
  const int64_t own_begin = Shares::of(full, size()).begin(rank());
  by_pieces(full, [&](const Tensor& piece, const auto& place) {
    int64_t offset = 0;
    for (int r = 0; r < size(); ++r) {
      const Part from = place(r);
      if (from.count > 0) copies_->fetch(at(piece.data, offset), at(full.data, from.begin), static_cast<size_t>(from.count));
      offset += from.count;
    }
    copies_->finish();
    const Part mine = part_of(piece.dim(0), rank(), size());
    const Tensor sum = piece.rows(mine.begin, mine.end());
    inner_->reduce_scatter(sum, piece);
    if (mine.count > 0) copies_->put(at(own.data, place(rank()).begin - own_begin), sum.data, sum.bytes());
  });
  copies_->finish();
}

void StagedComm::do_all_gather(Tensor full, Tensor own) {
  begin();
  const int64_t own_begin = Shares::of(full, size()).begin(rank());
  const bool in_place = own.data == at(full.data, own_begin);
  by_pieces(full, [&](const Tensor& piece, const auto& place) {
    const Part mine = part_of(piece.dim(0), rank(), size());
    const Tensor rows = piece.rows(mine.begin, mine.end());
    if (mine.count > 0) copies_->fetch(rows.data, at(own.data, place(rank()).begin - own_begin), rows.bytes());
    copies_->finish();
    inner_->all_gather(piece, rows);
    int64_t offset = 0;
    for (int r = 0; r < size(); ++r) {
      const Part to = place(r);
      if (to.count > 0 && !(in_place && r == rank()))
        copies_->put(at(full.data, to.begin), at(piece.data, offset), static_cast<size_t>(to.count));
      offset += to.count;
    }
  });
  copies_->finish();
}

size_t StagedComm::take_buffer(size_t bytes) {
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  HLAT_CHECK(free != taken_.end() && bytes <= buffer_bytes_, "{}: a message of {} bytes, room is reserved for {} of {}, {} are under way",
             where(), bytes, buffers_.size(), buffer_bytes_, messages_.size());
  *free = true;
  return static_cast<size_t>(free - taken_.begin());
}

uint64_t StagedComm::start_send(const void* data, size_t bytes, int peer, int tag) {
  begin();
  Message m{.buffer = take_buffer(bytes), .request = {}, .bytes = bytes};
  copies_->fetch(buffers_[m.buffer], data, bytes);
  copies_->finish();
  m.request = inner_->send(raw_bytes(buffers_[m.buffer], bytes), peer, tag);
  messages_.emplace(next_id_, m);
  return next_id_++;
}

uint64_t StagedComm::start_recv(void* data, size_t bytes, int peer, int tag) {
  Message m{.buffer = take_buffer(bytes), .request = {}, .to = data, .bytes = bytes, .mark = copies_->mark()};
  m.request = inner_->recv(raw_bytes(buffers_[m.buffer], bytes), peer, tag);
  messages_.emplace(next_id_, m);
  return next_id_++;
}

void StagedComm::finish(uint64_t id) {
  const auto found = messages_.find(id);
  HLAT_CHECK(found != messages_.end(), "{}: no message {} is under way", where(), id);
  Message m = found->second;
  inner_->wait(m.request);
  if (m.to != nullptr) {
    copies_->wait_for(m.mark);
    copies_->put(m.to, buffers_[m.buffer], m.bytes);
    copies_->finish();
  }
  taken_[m.buffer] = false;
  messages_.erase(found);
}

}  // namespace hlat
