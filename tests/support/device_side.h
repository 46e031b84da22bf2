// Lets checks written for tensors in host memory try a group whose tensors lie on a device: every call takes its tensors there, calls that
// group, and brings the results back.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/comm.h"
#include "ops/device.h"

namespace hlat::test {

class DeviceSide final : public Comm {
 public:
  DeviceSide(std::unique_ptr<Comm> comm, Device& device)
      : Comm(comm->rank(), comm->size(), comm->name()), device_(device), comm_(std::move(comm)) {}
  ~DeviceSide() override = default;

  std::unique_ptr<Comm> split(int color, int key, std::string name) override {
    return std::make_unique<DeviceSide>(comm_->split(color, key, std::move(name)), device_);
  }
  void cancel() override { comm_->cancel(); }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override {
    Under u{.there = there(words(const_cast<void*>(data), bytes), true)};
    u.request = comm_->send(u.there.t, peer, tag);
    return add(std::move(u));
  }
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override {
    Under u{.there = there(words(data, bytes), false), .to = data};
    u.request = comm_->recv(u.there.t, peer, tag);
    return add(std::move(u));
  }
  void finish(uint64_t id) override {
    Under& u = messages_.at(id);
    comm_->wait(u.request);
    if (u.to != nullptr) device_.download(u.to, u.there.t);
    messages_.erase(id);
  }
  void do_all_reduce(Tensor t) override {
    const Copy c = there(t, true);
    comm_->all_reduce(c.t);
    device_.download(t.data, c.t);
  }
  void do_reduce_scatter(Tensor own, Tensor full) override {
    const Copy f = there(full, true), o = own_there(own, full, f);
    comm_->reduce_scatter(o.t, f.t);
    device_.download(full.data, f.t);  // what must not change is seen too
    device_.download(own.data, o.t);
  }
  void do_all_gather(Tensor full, Tensor own) override {
    const Copy f = there(full, true), o = own_there(own, full, f);
    comm_->all_gather(f.t, o.t);
    device_.download(full.data, f.t);
  }
  void do_broadcast(Tensor t, int root) override {
    const Copy c = there(t, true);
    comm_->broadcast(c.t, root);
    device_.download(t.data, c.t);
  }
  void do_barrier() override { comm_->barrier(); }
  void do_all_gather_bytes(std::byte* all, size_t bytes) override { comm_->host().all_gather_bytes(all, bytes); }
  void do_broadcast_bytes(void* data, size_t bytes, int root) override { comm_->host().broadcast_bytes(data, bytes, root); }
  void do_copy(void* to, const void* from, int64_t bytes) override {
    const auto n = static_cast<size_t>(bytes);
    const Copy f = there(words(const_cast<void*>(from), n), true), t = there(words(to, n), false);
    comm_->all_gather(t.t, f.t);
    device_.download(to, t.t);
  }
  void do_reserve(Region& region) override {
    comm_->reserve(region);
    if (name() == "world") comm_->reserve_messages(size_t{1200000}, 30);  // as many as check_messages has under way
  }

 private:
  struct Copy {
    Tensor t;
    std::shared_ptr<std::byte> memory;
  };
  struct Under {
    Copy there;
    void* to = nullptr;
    Request request = {};
  };
  static Tensor words(void* data, size_t bytes) { return Tensor::contiguous(data, DType::f8e4m3, {static_cast<int64_t>(bytes)}); }

  Copy there(const Tensor& t, bool filled) {
    std::byte* p = device_.allocate(t.bytes() + 1);
    Copy c{.t = Tensor::contiguous(p, t.dtype, t.shape), .memory = {p, [this](std::byte* q) { device_.free(q); }}};
    if (filled && t.bytes() > 0) device_.upload(c.t, t.data);
    return c;
  }
  // own lies in its place in full, or apart.
  Copy own_there(const Tensor& own, const Tensor& full, const Copy& full_there) {
    const auto *mine = own.as<std::byte>(), *first = full.as<std::byte>();
    if (mine < first || mine >= first + full.bytes()) return there(own, true);
    return {.t = Tensor::contiguous(full_there.t.as<std::byte>() + (mine - first), own.dtype, own.shape), .memory = full_there.memory};
  }
  uint64_t add(Under u) {
    messages_.emplace(next_, std::move(u));
    return next_++;
  }

  Device& device_;
  std::unique_ptr<Comm> comm_;
  std::map<uint64_t, Under> messages_;
  uint64_t next_ = 1;
};

}  // namespace hlat::test
