// A group of one: nothing to wait for, and nobody to talk to, so that the front starts no message.
#pragma once

#include <utility>

#include "comm/comm.h"

namespace hlat {

class SelfComm final : public Comm {
 public:
  explicit SelfComm(std::string name = "world") : Comm(0, 1, std::move(name)) {}
  std::unique_ptr<Comm> split(int /*color*/, int /*key*/, std::string name) override { return std::make_unique<SelfComm>(std::move(name)); }

 protected:
  uint64_t start_send(const void*, size_t, int, int) override { return 1; }
  uint64_t start_recv(void*, size_t, int, int) override { return 1; }
  void finish(uint64_t) override {}
};

}  // namespace hlat
