// A group that hands its messages on to another one and flips a bit in each longer one that comes in: the planted fault of a transport
// that corrupts data. For host memory. All ranks of a group are wrapped, and those that `strikes` names corrupt.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/comm.h"

namespace hlat {

class CorruptingComm final : public Comm {
 public:
  CorruptingComm(std::unique_ptr<Comm> inner, bool strikes)
      : Comm(inner->rank(), inner->size(), inner->name()), inner_(std::move(inner)), strikes_(strikes) {}

  std::unique_ptr<Comm> split(int color, int key, std::string name) override { return inner_->split(color, key, std::move(name)); }
  void cancel() override { inner_->cancel(); }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override;
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override;
  void finish(uint64_t id) override;

 private:
  struct Incoming {
    unsigned char* data = nullptr;
    size_t bytes = 0;
  };

  std::unique_ptr<Comm> inner_;
  bool strikes_;
  std::map<uint64_t, Incoming> incoming_;
};

}  // namespace hlat
