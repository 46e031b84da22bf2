// In place of mpi_comm.cc where the build has no MPI: several ranks are refused with what to do about it.
#include "comm/mpi_comm.h"

namespace hlat {

MpiSession::MpiSession(const MpiOptions& /*options*/) : exceptions_(0) {
  throw UsageError(
      "this hlat was built without MPI, so it runs as one process: install Open MPI (Debian: libopenmpi-dev, openmpi-bin) and build "
      "again with HLAT_MPI=ON, or start one process without a launcher");
}

MpiSession::~MpiSession() = default;

std::string MpiSession::library() { return {}; }
void MpiSession::set_time_limit(double /*seconds*/) {}
void MpiSession::answer_roll_call(int /*number*/) {}
std::vector<int> MpiSession::call_roll(int /*number*/, double /*wait_s*/) { return {}; }
void MpiSession::send_roll_call(const RollCall& /*message*/, int /*to*/) {}

void MpiSession::abort(int code) { std::_Exit(code); }

}  // namespace hlat
