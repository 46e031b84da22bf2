// Ranks as processes, under mpirun: dist_comm MODE.
//   check       the properties of comm_checks.h
//   pieces      the same with messages cut into small pieces, as those above 2 GiB are
//   time_limit  a message that never comes, and an exchange that a peer does not join, end with an Error that says who waited for whom
//   sizes       a message shorter than its receiver expects is found
//   failure     one rank throws: its text is printed, and the other ranks, which wait for it, do not stay behind
#include <cstdio>
#include <string>

#include "comm/host_exchange.h"
#include "comm/mpi_comm.h"
#include "support/comm_checks.h"
#include "support/host_memory.h"

namespace hlat {
namespace {

template <class Call>
void expect_error(const std::vector<std::string>& parts, const Call& call) {
  std::string text = "no error";
  try {
    call();
  } catch (const Error& e) {
    text = e.what();
  }
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos) fail("expected '{}' in: {}", part, text);
}

void check_time_limit(Comm& world) {
  const auto axis = world.split(0, 0, "pp");
  if (axis->rank() != 0) return;
  HostMemory memory;
  expect_error({"pp recv on rank 0 of 2 (", "): waited 0.5 s for rank 1, rank 1 of the job: it is stopped"}, [&] {
    Request r = axis->recv(memory.zeros(DType::f32, {4}), 1, 0);
    axis->wait(r);
  });
  expect_error({"pp all_gather on rank 0 of 2 (", "): waited 0.5 s for rank 1, rank 1 of the job: it is stopped"},
               [&] { all_gather_values(*axis, 1); });
}

void check_sizes(Comm& world) {
  HostMemory memory;
  const Tensor t = memory.zeros(DType::f32, {4 - world.rank()});
  Request r = world.rank() == 0 ? world.recv(t, 1, 0) : world.send(t, 0, 0);
  std::string text = "no error";
  try {
    world.wait(r);
  } catch (const CheckFailed& e) {
    text = e.what();
  }
  const char* part = world.rank() == 0 ? "recv of 16 bytes, rank 1 sent 12" : "no error";
  if (text.find(part) == std::string::npos) fail("expected '{}' in: {}", part, text);
}

void run(const std::string& mode) {
  MpiOptions options;
  options.time_limit_s = mode == "time_limit" ? 0.5 : 60;
  if (mode == "pieces") options.max_message_bytes = 5000;
  MpiSession session(options);
  Comm& world = session.world();
  if (world.size() < 2) fail("to be started by mpirun, with 2 ranks or more");
  if (mode == "check" || mode == "pieces") {
    test::check_all(world);
  } else if (mode == "time_limit") {
    check_time_limit(world);
  } else if (mode == "sizes") {
    check_sizes(world);
  } else {
    world.barrier();
    if (world.rank() == 1) fail("rank 1 broke");
    world.barrier();
  }
}

}  // namespace
}  // namespace hlat

int main(int argc, char** argv) {
  try {
    hlat::run(argc > 1 ? argv[1] : "check");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
