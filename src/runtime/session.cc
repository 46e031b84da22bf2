#include "runtime/session.h"

#include "base/machine.h"
#include "comm/mpi_comm.h"
#include "comm/self_comm.h"

namespace hlat {

Session::Session(const Launch& launch, int64_t timeout_s) : host_(host_name()) {
  if (launch.ranks > 1) {
    mpi_ = std::make_unique<MpiSession>(MpiOptions{.time_limit_s = static_cast<double>(timeout_s)});
    world_ = &mpi_->world();
    if (world_->size() != launch.ranks)
      throw UsageError(
          fmt::format("{} started {} ranks, but the MPI that hlat was built with sees {}: start them with the mpirun of that MPI, or with "
                      "srun --mpi=pmix",
                      launch.by, launch.ranks, world_->size()));
  } else {
    self_ = std::make_unique<SelfComm>("world");
    world_ = self_.get();
  }
  neighbours_ = find_local_ranks(*world_, host_ + boot_id(), launch.by);
}

Session::~Session() = default;

std::string Session::where() const { return fmt::format("rank {} of {} on {}", world_->rank(), world_->size(), host_); }

std::string Session::mpi_library() const { return mpi_ ? mpi_->library() : ""; }

void Session::set_time_limit(double seconds) {
  if (mpi_) mpi_->set_time_limit(seconds);
}

void Session::answer_roll_call(int number) {
  if (mpi_) mpi_->answer_roll_call(number);
}

std::vector<int> Session::call_roll(int number, double wait_s) { return mpi_ ? mpi_->call_roll(number, wait_s) : std::vector{number}; }

void Session::abort(int code) {
  if (mpi_) mpi_->abort(code);
  std::_Exit(code);
}

}  // namespace hlat
