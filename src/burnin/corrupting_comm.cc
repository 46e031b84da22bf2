#include "burnin/corrupting_comm.h"

namespace hlat {

namespace {

constexpr size_t kLeastCorrupted = 128;  // bytes

// Tags of collectives lie above those that a group's users may take.
int inner_tag(int tag) { return tag < kUserTags ? tag : tag - 64; }

Tensor bytes_as_tensor(void* data, size_t bytes) { return Tensor::contiguous(data, DType::bf16, {static_cast<int64_t>(bytes / 2)}); }

}  // namespace

uint64_t CorruptingComm::start_send(const void* data, size_t bytes, int peer, int tag) {
  return inner_->send(bytes_as_tensor(const_cast<void*>(data), bytes), peer, inner_tag(tag)).id;
}

uint64_t CorruptingComm::start_recv(void* data, size_t bytes, int peer, int tag) {
  const uint64_t id = inner_->recv(bytes_as_tensor(data, bytes), peer, inner_tag(tag)).id;
  if (strikes_ && bytes >= kLeastCorrupted) incoming_[id] = {.data = static_cast<unsigned char*>(data), .bytes = bytes};
  return id;
}

void CorruptingComm::finish(uint64_t id) {
  Request request{.id = id};
  inner_->wait(request);
  const auto it = incoming_.find(id);
  if (it == incoming_.end()) return;
  // The top of a float's mantissa, in its middle element.
  it->second.data[it->second.bytes / 8 * 4 + 2] ^= 0x40;
  incoming_.erase(it);
}

}  // namespace hlat
