#include "comm/null_comm.h"

#include "comm/staged_comm.h"

namespace hlat {

NullComm::NullComm(int rank, int size, std::string name, Transport transport) : Comm(rank, size, std::move(name)), transport_(transport) {
  HLAT_CHECK(0 <= rank && rank < size, "{}: rank {} of {}", this->name(), rank, size);
}

std::unique_ptr<Comm> NullComm::split(int color, int key, std::string name) {
  HLAT_CHECK(false, "{}: a null group cannot be split ({}, color {}, key {})", this->name(), name, color, key);
  return nullptr;
}

void NullComm::do_reserve(Region& region) {
  if (transport_ == Transport::host) return Comm::do_reserve(region);
  add_host_bytes(transport_ == Transport::staged ? staged_bytes(size()) : sum_staging(size()));
}

void NullComm::do_reserve_messages(size_t bytes, int count) {
  if (transport_ == Transport::staged) add_host_bytes(staged_message_bytes(bytes, count));
}

}  // namespace hlat
