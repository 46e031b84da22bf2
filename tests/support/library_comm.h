// Sums as a library of collectives may take them (Summation::library): one rank after the other in an order that depends on the group,
// rounded to the tensor's type at each addition. All else goes to the group it wraps, which is for host memory. It takes no staging of
// the comm region, as groups of NCCL do not, so the plan for that transport holds for it.
#pragma once

#include <memory>
#include <vector>

#include "comm/comm.h"

namespace hlat {

class LibraryComm final : public Comm {
 public:
  // group: the same on all its ranks, another for other groups.
  LibraryComm(std::unique_ptr<Comm> inner, int group);

  std::unique_ptr<Comm> split(int, int, std::string) override { throw Error("not here"); }
  Summation summation() const override { return Summation::library; }
  Comm& host() override { return *inner_; }
  void cancel() override { inner_->cancel(); }

  // The k-th rank of the sums.
  int place(int k) const { return (group_ + (group_ % 2 == 0 ? k : size() - k)) % size(); }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override;
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override;
  void finish(uint64_t id) override;
  void do_all_reduce(Tensor t) override;
  void do_reduce_scatter(Tensor own, Tensor full) override;
  void do_all_gather(Tensor full, Tensor own) override { inner_->all_gather(full, own); }
  void do_broadcast(Tensor t, int root) override { inner_->broadcast(t, root); }
  void do_barrier() override { inner_->barrier(); }
  void do_reserve(Region& region) override;

 private:
  std::unique_ptr<Comm> inner_;
  int group_;
  std::vector<std::byte> staging_;
  Region region_;
};

}  // namespace hlat
