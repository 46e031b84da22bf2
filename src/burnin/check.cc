#include "burnin/check.h"

#include <sched.h>

#include <algorithm>

#include "base/machine.h"
#include "base/rng.h"
#include "burnin/clock_check.h"
#include "burnin/comm_check.h"
#include "burnin/disk_check.h"
#include "burnin/gpu_check.h"
#include "burnin/matmul_check.h"
#include "burnin/memory_check.h"
#include "burnin/space_check.h"
#include "burnin/version_check.h"
#include "comm/host_exchange.h"
#include "config/nearest.h"

namespace hlat {

namespace {

// What a rank takes of its host.
struct Claim {
  uint64_t host = 0, device = 0;  // device 0: its cores
  cpu_set_t cores{};
  int threads = 1;
};

// Whether some rank competes with others for its cores or its GPU.
bool ranks_compete(const CheckRun& run) {
  const std::string id = run.backend.device_id();
  Claim own{.host = hash_name(run.session.host() + boot_id()),
            .device = id.empty() ? 0 : hash_name(id),
            .cores = {},
            .threads = run.session.threads()};
  if (run.config.device.threads > 0) own.threads = static_cast<int>(run.config.device.threads);
  if (sched_getaffinity(0, sizeof own.cores, &own.cores) != 0) CPU_SET(0, &own.cores);
  const std::vector<Claim> all = all_gather_values(run.world(), own);
  const auto competes = [&](const Claim& mine) {
    int threads = 0, sharing = 0;
    for (const Claim& other : all) {
      if (other.host != mine.host) continue;
      cpu_set_t both;
      CPU_AND(&both, &other.cores, &mine.cores);
      threads += CPU_COUNT(&both) > 0 ? other.threads : 0;
      sharing += other.device == mine.device ? 1 : 0;
    }
    return mine.device != 0 ? sharing > 1 : threads > CPU_COUNT(&mine.cores);
  };
  return std::any_of(all.begin(), all.end(), competes);
}

std::vector<std::string> hosts_of(Session& session) {
  std::vector<std::string> hosts;
  for (const nlohmann::json& j : gather_json(session.world(), session.host())) hosts.push_back(j);
  return hosts;
}

// The time that is left to products and patterns.
struct Times {
  double matmul = 1, memory = 1;  // seconds
};
Times times_of(const CheckOptions& options) {
  if (options.short_form) return {.matmul = 1, .memory = 2};
  const double all = 60 * options.minutes;
  if (!options.has("memory")) return {.matmul = all, .memory = 0};
  if (!options.has("matmul")) return {.matmul = 0, .memory = all};
  return {.matmul = 0.7 * all, .memory = 0.3 * all};
}

}  // namespace

std::set<std::string> parse_parts(const std::string& list) { return parse_names("--only", list, "part of the check", kCheckParts); }

CheckReport run_check(const Config& config, Backend& backend, Session& session, const CheckOptions& options,
                      const std::function<void(const std::string&)>& tell) {
  CheckRun run{.config = config, .backend = backend, .session = session, .options = options, .hosts = hosts_of(session), .tell = tell};
  run.competes = ranks_compete(run);
  for (const int ranks : all_gather_values(session.world(), session.local_ranks())) run.turns = std::max(run.turns, ranks);
  const Times times = times_of(options);
  CheckReport report{.parts = {}, .hosts = run.hosts};
  const auto part = [&](const std::string& name, const auto& body) {
    if (!options.has(name)) return;
    const double start = now_s();
    report.parts.push_back(body());
    report.parts.back().seconds = now_s() - start;
  };
  part("versions", [&] { return check_versions(run); });
  part("clock", [&] { return check_clock(run); });
  part("space", [&] { return check_space(run); });
  part("disk", [&] { return check_disk(run); });
  part("memory", [&] { return check_memory(run, times.memory); });
  part("matmul", [&] { return check_matmul(run, times.matmul); });
  part("gpu", [&] { return check_gpu(run); });  // right after the load
  part("comm", [&] { return check_comm(run); });
  return report;
}

}  // namespace hlat
