#include "cli/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/machine.h"
#include "base/rng.h"
#include "cli/print.h"
#include "comm/host_exchange.h"
#include "config/print.h"
#include "runtime/start_watch.h"

namespace hlat {

void check_same(Comm& world, const Config& config) {
  Config shared = config;
  shared.device = {};
  const std::vector<uint64_t> all = all_gather_values(world, hash_name(to_yaml(shared)));
  const auto other = std::find_if(all.begin(), all.end(), [&](uint64_t h) { return h != all[0]; });
  if (other != all.end())
    throw UsageError(fmt::format("rank {} has another config than rank 0; give all ranks the same config file, overrides and hlat",
                                 other - all.begin()));
}

void run_on_ranks(Session& session, const Config& config, const int64_t& step, const std::function<void()>& body, const OnFailure& tell) {
  const bool alone = session.world().size() == 1;
  try {
    check_same(session.world(), config);
    body();
    session.world().barrier();  // nobody leaves while another still needs it
  } catch (const std::exception& e) {
    const int code = exit_code_of(e);
    const std::string more = tell ? tell(e, code) : "";
    if (alone) throw;
    if (code == kUsage && session.rank() != 0) delay_exit_after_rank_0();  // and if it has no such problem, this rank speaks
    const std::string when = step > 0 ? fmt::format(", step {}", step) : "";
    print_err(
        fmt::format("hlat: {}{}: {}{}\n{}", session.where(), when, e.what(), more, code == kBug ? "hlat: this is a bug in hlat\n" : ""));
    session.abort(code);
  }
}

Session start_session(const Launch& launch, const ParallelConfig& limits) {
  StartWatch start(launch, static_cast<double>(limits.start_timeout_s), [](const std::string& words) {
    print_err(fmt::format("hlat: {}\n", words));
    std::_Exit(kFault);
  });
  start.begin("joining the other ranks (MPI_Init)");
  return Session(launch, limits.timeout_s);  // which is there before the watch ends
}

Launch this_launch() {
  const Environment env = [](const char* name) { return std::getenv(name); };
  const Launch launch = detect_launch(env);
  check_rendezvous(launch, env);
  return launch;
}

std::string where(const Launch& launch) {
  return launch.ranks == 1 ? "" : fmt::format("rank {} of {} on {}: ", launch.rank, launch.ranks, host_name());
}

bool is_reporting_rank() {
  try {
    return this_launch().rank == 0;
  } catch (const std::exception&) {
    return true;  // variables left over in a shell must not make its commands silent
  }
}

void delay_exit_after_rank_0() { std::this_thread::sleep_for(std::chrono::seconds(5)); }

}  // namespace hlat
