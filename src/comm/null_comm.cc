#include "comm/null_comm.h"

#include "comm/staged_comm.h"

namespace hlat {

namespace {
constexpr uint64_t kReceived = uint64_t{1} << 40;
}

NullComm::NullComm(int rank, int size, std::string name, Transport transport) : Comm(rank, size, std::move(name)), transport_(transport) {
  HLAT_CHECK(0 <= rank && rank < size, "{}: rank {} of {}", this->name(), rank, size);
}

std::unique_ptr<Comm> NullComm::split(int color, int key, std::string name) {
  HLAT_CHECK(false, "{}: a null group cannot be split ({}, color {}, key {})", this->name(), name, color, key);
  return nullptr;
}

void NullComm::trace_to(StepTrace& trace, uint8_t group) {
  if (size() == 1) return;
  trace_ = &trace;
  group_ = group;
  traced_overlap_.emplace(trace, group);
}

Overlap& NullComm::overlap() { return traced_overlap_ ? *traced_overlap_ : Comm::overlap(); }

void NullComm::write_down(CommKind kind, const Tensor& t, int peer) {
  trace_->call({.group = group_, .kind = static_cast<uint8_t>(kind), .peer = peer, .bytes = static_cast<double>(t.bytes())});
}

// The number of a send is its id; a receive is waited for at once wherever it is called.
uint64_t NullComm::start_send(const void* /*data*/, size_t bytes, int peer, int tag) {
  return trace_->send(
      {.group = group_, .kind = static_cast<uint8_t>(CommKind::send), .peer = peer, .tag = tag, .bytes = static_cast<double>(bytes)});
}

uint64_t NullComm::start_recv(void* /*data*/, size_t bytes, int peer, int tag) {
  trace_->recv(
      {.group = group_, .kind = static_cast<uint8_t>(CommKind::recv), .peer = peer, .tag = tag, .bytes = static_cast<double>(bytes)});
  return kReceived;
}

void NullComm::finish(uint64_t id) {
  if (id != kReceived) trace_->wait_sent(static_cast<uint32_t>(id));
}

void NullComm::do_reserve(Region& region) {
  if (transport_ == Transport::host) return Comm::do_reserve(region);
  add_host_bytes(transport_ == Transport::staged ? staged_bytes(size()) : sum_staging(size()));
}

void NullComm::do_reserve_messages(size_t bytes, int count) {
  if (transport_ == Transport::staged) add_host_bytes(staged_message_bytes(bytes, count));
}

}  // namespace hlat
