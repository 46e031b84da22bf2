#include "checkpoint/save_agreement.h"

#include <algorithm>

#include "comm/host_exchange.h"

namespace hlat {

namespace {

constexpr int kStatusTag = 0;

Tensor message(SaveStatus& status) {
  static_assert(std::is_trivially_copyable_v<SaveStatus> && sizeof(SaveStatus) % sizeof(int32_t) == 0);
  return Tensor::contiguous(&status, DType::i32, {static_cast<int64_t>(sizeof(SaveStatus) / sizeof(int32_t))});
}

void add(SaveStatus& sum, const SaveStatus& s) {
  if (s.failed() && (!sum.failed() || s.failed_rank < sum.failed_rank)) {
    sum.failed_rank = s.failed_rank;
    sum.text = s.text;
  }
  sum.done = sum.done != 0 && s.done != 0 ? 1 : 0;
  sum.disk_full |= s.disk_full;
  sum.bytes += s.bytes;
  sum.room += s.room;
}

}  // namespace

void SaveStatus::set_problem(int rank, std::string_view problem, bool disk_is_full) {
  failed_rank = rank;
  disk_full = disk_is_full ? 1 : 0;
  text = {};
  problem.copy(text.data(), text.size() - 1);
}

// Rank r hears from ranks 2r + 1 and 2r + 2.
SaveStatus agree(Comm* comm, const SaveStatus& own) {
  SaveStatus sum = own;
  if (comm == nullptr || comm->size() == 1) return sum;
  for (int child = 2 * comm->rank() + 1; child <= std::min(2 * comm->rank() + 2, comm->size() - 1); ++child) {
    SaveStatus got;
    Request request = comm->recv(message(got), child, kStatusTag);
    comm->wait(request);
    add(sum, got);
  }
  if (comm->rank() > 0) {
    Request request = comm->send(message(sum), (comm->rank() - 1) / 2, kStatusTag);
    comm->wait(request);
  }
  return broadcast_value(*comm, sum, 0);
}

}  // namespace hlat
