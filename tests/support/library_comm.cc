#include "support/library_comm.h"

#include <cstring>

#include "comm/shares.h"
#include "support/host_memory.h"

namespace hlat {

namespace {

Tensor message(void* data, size_t bytes) { return Tensor::contiguous(data, DType::f8e4m3, {static_cast<int64_t>(bytes)}); }

}  // namespace

LibraryComm::LibraryComm(std::unique_ptr<Comm> inner, int group)
    : Comm(inner->rank(), inner->size(), inner->name()), inner_(std::move(inner)), group_(group) {}

void LibraryComm::do_reserve(Region& /*region*/) {
  staging_.resize(sum_staging(size()) + kAlign);
  auto* base = staging_.data() + (kAlign - reinterpret_cast<uintptr_t>(staging_.data()) % kAlign) % kAlign;
  region_ = Region(Purpose::comm, base, sum_staging(size()));
  inner_->reserve(region_);
  add_host_bytes(sum_staging(size()));
}

uint64_t LibraryComm::start_send(const void* data, size_t bytes, int peer, int tag) {
  return inner_->send(message(const_cast<void*>(data), bytes), peer, tag).id;
}
uint64_t LibraryComm::start_recv(void* data, size_t bytes, int peer, int tag) { return inner_->recv(message(data, bytes), peer, tag).id; }
void LibraryComm::finish(uint64_t id) {
  Request request{id};
  inner_->wait(request);
}

void LibraryComm::do_all_reduce(Tensor t) {
  HostMemory memory;
  const int64_t n = t.numel();
  const Tensor all = memory.zeros(t.dtype, {size() * n});
  const Tensor mine = all.rows(rank() * n, (rank() + 1) * n);
  if (n > 0) std::memcpy(mine.data, t.data, t.bytes());
  inner_->all_gather(all, mine);
  for (int64_t i = 0; i < n; ++i) {
    store_f64(t, i, load_f64(all, place(0) * n + i));
    for (int k = 1; k < size(); ++k) store_f64(t, i, load_f64(t, i) + load_f64(all, place(k) * n + i));
  }
}

void LibraryComm::do_reduce_scatter(Tensor own, Tensor full) {
  HostMemory memory;
  const Tensor sum = memory.copy(full.dtype, full);
  do_all_reduce(sum.viewed({sum.numel()}));
  if (own.bytes() > 0) std::memcpy(own.data, at(sum.data, Shares::of(full, size()).begin(rank())), own.bytes());
}

}  // namespace hlat
