// A transport that hands messages on to another one and, once, gets one of them wrong: a receiver finds the sign of one f32
// element flipped, that whose size is nearest to the root mean square of the message.
#pragma once

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "comm/comm.h"

namespace hlat {

struct Fault {
  std::string axis;
  CommKind kind = CommKind::all_reduce;
  int rank = 0;            // of the mesh: who receives it
  size_t min_bytes = 128;  // smaller messages pass
  int skip = 0;            // so do this many others
  std::atomic<bool> armed = false;
};

class FaultyComm final : public Comm {
 public:
  FaultyComm(std::unique_ptr<Comm> inner, Fault& fault, bool strikes)
      : Comm(inner->rank(), inner->size(), inner->name()), inner_(std::move(inner)), fault_(fault), strikes_(strikes) {}

  std::unique_ptr<Comm> split(int, int, std::string) override { throw Error("not here"); }
  void cancel() override { inner_->cancel(); }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override {
    return inner_->send(message(const_cast<void*>(data), bytes), peer, tag_of(tag)).id;
  }
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override {
    const uint64_t id = inner_->recv(message(data, bytes), peer, tag_of(tag)).id;
    if (tag == kUserTags + static_cast<int>(fault_.kind) && bytes >= fault_.min_bytes) received_[id] = {static_cast<float*>(data), bytes};
    return id;
  }
  void finish(uint64_t id) override {
    Request request{id};
    inner_->wait(request);
    const auto it = received_.find(id);
    if (it == received_.end()) return;
    const Received r = it->second;
    received_.erase(it);
    if (!strikes_ || !fault_.armed || fault_.skip-- > 0) return;
    fault_.armed = false;
    corrupt(r.data, static_cast<int64_t>(r.bytes / sizeof(float)));
  }

 private:
  struct Received {
    float* data = nullptr;
    size_t bytes = 0;
  };

  static Tensor message(void* data, size_t bytes) { return Tensor::contiguous(data, DType::f8e4m3, {static_cast<int64_t>(bytes)}); }
  // Tags of collectives lie above those that the inner comm takes.
  static int tag_of(int tag) { return tag < kUserTags ? tag : tag - 64; }

  static void corrupt(float* x, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double typical = std::sqrt(squares / static_cast<double>(n));
    const auto distance = [&](int64_t i) { return std::abs(std::abs(static_cast<double>(x[i])) - typical); };
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i)
      if (distance(i) < distance(best)) best = i;
    x[best] = -x[best];
  }

  std::unique_ptr<Comm> inner_;
  Fault& fault_;
  bool strikes_;
  std::map<uint64_t, Received> received_;
};

}  // namespace hlat
