#include "runtime/session.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "comm/mpi_comm.h"
#include "comm/self_comm.h"

namespace hlat {

namespace {

// What ranks tell each other to find out who shares a host and a core.
struct Card {
  uint64_t host = 0;
  cpu_set_t cores{};
};
static_assert(sizeof(Card) % sizeof(int32_t) == 0);
constexpr int64_t kCardWords = sizeof(Card) / sizeof(int32_t);

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

}  // namespace

Session::Session(const Launch& launch, int64_t timeout_s) : host_(host_name()) {
  if (launch.ranks > 1) {
    mpi_ = std::make_unique<MpiSession>(MpiOptions{.time_limit_s = static_cast<double>(timeout_s)});
    world_ = &mpi_->world();
    if (world_->size() != launch.ranks)
      fail("{} started {} ranks, but MPI sees {}; start them with mpirun, or with srun --mpi=pmix", launch.by, launch.ranks,
           world_->size());
  } else {
    self_ = std::make_unique<SelfComm>("world");
    world_ = self_.get();
  }
  meet_neighbours();
}

Session::~Session() = default;

void Session::meet_neighbours() {
  const auto size = static_cast<size_t>(world_->size());
  std::vector<Card> cards(size);
  Card& mine = cards[static_cast<size_t>(rank())];
  mine.host = hash_name(host_);
  CPU_ZERO(&mine.cores);
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0) CPU_SET(0, &mine.cores);
  const auto words = [](Card* c, int64_t count) { return Tensor::contiguous(c, DType::i32, {count, kCardWords}); };
  world_->all_gather(words(cards.data(), world_->size()), words(&mine, 1));
  local_ranks_ = local_rank_ = 0;
  int sharing = 0;
  for (const Card& c : cards) {
    if (c.host != mine.host) continue;
    ++local_ranks_;
    local_rank_ += &c < &mine ? 1 : 0;
    cpu_set_t both;
    CPU_AND(&both, &c.cores, &mine.cores);
    sharing += CPU_COUNT(&both) > 0 ? 1 : 0;
  }
  threads_ = std::max(1, CPU_COUNT(&mine.cores) / std::max(1, sharing));
}

std::string Session::where() const { return fmt::format("rank {} of {} on {}", world_->rank(), world_->size(), host_); }

void Session::abort(int code) {
  if (mpi_) mpi_->abort(code);
  std::_Exit(code);
}

}  // namespace hlat
