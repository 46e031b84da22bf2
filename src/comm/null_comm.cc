#include "comm/null_comm.h"

namespace hlat {

NullComm::NullComm(int rank, int size, std::string name) : Comm(rank, size, std::move(name)) {
  HLAT_CHECK(0 <= rank && rank < size, "{}: rank {} of {}", this->name(), rank, size);
}

std::unique_ptr<Comm> NullComm::split(int color, int key, std::string name) {
  HLAT_CHECK(false, "{}: a null group cannot be split ({}, color {}, key {})", this->name(), name, color, key);
  return nullptr;
}

}  // namespace hlat
