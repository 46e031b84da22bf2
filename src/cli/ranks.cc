#include "cli/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "cli/exit_code.h"
#include "comm/host_exchange.h"
#include "config/print.h"

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

void run_on_ranks(Session& session, const Config& config, const int64_t& step, const std::function<void()>& body) {
  if (session.world().size() == 1) return body();
  const auto end = [&](const char* what, int code) {
    const std::string when = step > 0 ? fmt::format(", step {}", step) : "";
    fmt::print(stderr, "hlat: {}{}: {}\n", session.where(), when, what);
    std::fflush(stderr);
    session.abort(code);
  };
  try {
    check_same(session.world(), config);
    body();
    session.world().barrier();  // nobody leaves while another still needs it
  } catch (const UsageError& e) {
    if (session.rank() != 0) delay_exit_after_rank_0();  // and if it has no such problem, this rank speaks
    end(e.what(), kUsage);
  } catch (const CheckFailed& e) {
    end(fmt::format("{}\nhlat: this is a bug in hlat", e.what()).c_str(), kBug);
  } catch (const std::exception& e) {
    end(e.what(), kFailed);
  }
}

Launch this_launch() {
  const Environment env = [](const char* name) { return std::getenv(name); };
  const Launch launch = detect_launch(env);
  check_rendezvous(launch, env);
  return launch;
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
