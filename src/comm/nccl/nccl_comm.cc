// NCCL knows no tags, and a send may last until its receive is there. So each channel of each neighbour has a communicator and a stream of
// its own (open_ring): no message waits behind another that its receiver wants later. NCCL connects ranks at the first operation, for
// which the host waits until the peer has come to it too. So each group and link has a first one when it is made, where all are.
#include "comm/nccl/nccl_comm.h"

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "comm/host_exchange.h"
#include "comm/nccl/nccl_group.h"
#include "comm/nccl/nccl_library.h"

namespace hlat {
namespace {

ncclUniqueId fresh_id() {
  ncclUniqueId id{};
  HLAT_NCCL(Nccl::get().GetUniqueId(&id));
  return id;
}

class NcclComm final : public Comm, private Overlap {
 public:
  NcclComm(NcclShared& shared, std::unique_ptr<Comm> host);

  std::unique_ptr<Comm> split(int color, int key, std::string name) override {
    return std::make_unique<NcclComm>(shared_, host_->split(color, key, std::move(name)));
  }
  Comm& host() override { return *host_; }
  Summation summation() const override { return Summation::library; }
  void open_ring() override;
  void cancel() override;
  void check() override { shared_.watch.check(); }
  Overlap& overlap() override { return *this; }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override {
    return message(peer, tag, true, [&](NcclGroup& link) { link.send(data, bytes, 1); });
  }
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override {
    return message(peer, tag, false, [&](NcclGroup& link) { link.recv(data, bytes, 0); });
  }
  void finish(uint64_t id) override;

  void do_all_reduce(Tensor t) override {
    if (t.numel() > 0) collective([&] { group_->all_reduce(t.data, t.numel(), t.dtype); });
  }
  void do_reduce_scatter(Tensor own, Tensor full) override {
    if (full.numel() > 0) collective([&] { group_->reduce_scatter(own.data, full.data, Shares::of(full, size()), full.dtype); });
  }
  void do_all_gather(Tensor full, Tensor own) override {
    if (full.numel() > 0) collective([&] { group_->all_gather(full.data, own.data, Shares::of(full, size())); });
  }
  void do_broadcast(Tensor t, int root) override {
    collective([&] { group_->broadcast(t.data, t.bytes(), root); });
  }
  void do_barrier() override { host_->barrier(); }
  void do_copy(void* to, const void* from, int64_t bytes) override;
  void do_reserve(Region& region) override;

 private:
  bool on_stream() const override { return true; }
  void begin_overlap(uint64_t /*mark*/) override {
    group_->after_work();
    overlapped_ = true;
  }
  void end_overlap() override { overlapped_ = false; }
  void join() override { group_->before_work(); }

  struct Pending {
    NcclGroup* link = nullptr;
    cudaEvent_t point = nullptr;
  };
  template <class Body>
  void collective(const Body& body) {
    if (!overlapped_) group_->after_work();
    body();
    if (!overlapped_) group_->before_work();
  }
  template <class Body>
  uint64_t message(int peer, int tag, bool sends, const Body& body);

  NcclShared& shared_;
  std::unique_ptr<Comm> host_;
  std::vector<std::byte> host_staging_;
  Region host_region_;
  std::unique_ptr<NcclGroup> group_;                                        // none in a group of one
  std::map<std::tuple<int, int, bool>, std::unique_ptr<NcclGroup>> links_;  // by channel, peer and whether it sends
  std::map<uint64_t, Pending> pending_;
  uint64_t next_id_ = 1;
  bool overlapped_ = false;
};

NcclComm::NcclComm(NcclShared& shared, std::unique_ptr<Comm> host)
    : Comm(host->rank(), host->size(), host->name()), shared_(shared), host_(std::move(host)) {
  if (size() == 1) return;
  const ncclUniqueId id = broadcast_value(*host_, rank() == 0 ? fresh_id() : ncclUniqueId{}, 0);
  group_ = std::make_unique<NcclGroup>(shared_, id, rank(), size(), name());
  group_->all_reduce(shared_.spare, 1, DType::i32);
  group_->wait();
}

void NcclComm::do_reserve(Region& /*region*/) {
  host_staging_.resize(sum_staging(size()) + kAlign);
  auto* base = host_staging_.data() + (kAlign - reinterpret_cast<uintptr_t>(host_staging_.data()) % kAlign) % kAlign;
  host_region_ = Region(Purpose::comm, base, sum_staging(size()));
  host_->reserve(host_region_);
  add_host_bytes(sum_staging(size()));
}

// All ranks go through the links of the ring in one order, and each makes those that it is an end of: nobody waits in a circle.
void NcclComm::open_ring() {
  if (size() == 1) return;
  using Ids = std::array<ncclUniqueId, 2>;  // of the links from one rank, by channel
  const std::vector<Ids> ids = all_gather_values(*host_, Ids{fresh_id(), fresh_id()});
  for (const int channel : {0, 1})
    for (int from = 0; from < size(); ++from) {
      const int to = (from + (channel == 0 ? 1 : size() - 1)) % size();
      if (rank() != from && rank() != to) continue;
      const bool sends = rank() == from;
      const ncclUniqueId& id = ids[static_cast<size_t>(from)][static_cast<size_t>(channel)];
      auto link = std::make_unique<NcclGroup>(shared_, id, sends ? 0 : 1, 2,
                                              fmt::format("{} channel {} from rank {} to {}", name(), channel, from, to));
      if (sends)
        link->send(shared_.spare, NcclShared::kSpareBytes, 1);
      else
        link->recv(shared_.spare, NcclShared::kSpareBytes, 0);
      link->wait();
      links_[{channel, sends ? to : from, sends}] = std::move(link);
    }
}

template <class Body>
uint64_t NcclComm::message(int peer, int tag, bool sends, const Body& body) {
  const auto found = links_.find({tag / kChannelTags, peer, sends});
  HLAT_CHECK(found != links_.end(), "{}: no link {} rank {} on channel {}: only neighbours in the ring have them", where(),
             sends ? "to" : "from", peer, tag / kChannelTags);
  NcclGroup& link = *found->second;
  link.after_work();
  body(link);
  pending_.emplace(next_id_, Pending{&link, link.point()});
  return next_id_++;
}

void NcclComm::finish(uint64_t id) {
  const auto found = pending_.find(id);
  HLAT_CHECK(found != pending_.end(), "{}: no message {} is under way", where(), id);
  found->second.link->work_waits(found->second.point);
  pending_.erase(found);
}

void NcclComm::do_copy(void* to, const void* from, int64_t bytes) {
  const cudaError_t status = cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, shared_.work);
  if (status != cudaSuccess) fail("CUDA: {} in {}", cudaGetErrorString(status), where());
}

void NcclComm::cancel() {
  host_->cancel();
  shared_.watch.give_up(fmt::format("{} on rank {} of {}: this rank gave up", name(), rank(), size()));
}

}  // namespace

bool NcclRank::available(std::string& why) { return Nccl::find(why) != nullptr; }

NcclRank::NcclRank(const NcclOptions& options)
    : shared_(std::make_unique<NcclShared>(options.device, static_cast<cudaStream_t>(options.work_stream), options.time_limit_s)) {}

NcclRank::~NcclRank() = default;

std::unique_ptr<Comm> NcclRank::make(std::unique_ptr<Comm> host) { return std::make_unique<NcclComm>(*shared_, std::move(host)); }

std::string NcclRank::describe() const {
  int v = 0;
  HLAT_NCCL(Nccl::get().GetVersion(&v));
  return fmt::format("NCCL {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

}  // namespace hlat
