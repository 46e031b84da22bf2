#include "runtime/neighbours.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/rng.h"
#include "comm/host_exchange.h"

namespace hlat {

namespace {

struct HostInfo {
  uint64_t host = 0;
  cpu_set_t cores{};
};

// mpirun binds its ranks but not itself. It gives each of one or two ranks a single core unless told otherwise.
std::string advice_on(int used, const std::string& launcher) {
  cpu_set_t cores;
  if (launcher != "mpirun" || sched_getaffinity(getppid(), sizeof cores, &cores) != 0 || used >= CPU_COUNT(&cores)) return {};
  return fmt::format("mpirun keeps the ranks of this machine on {} of {} cores; its option --bind-to none gives them all", used,
                     CPU_COUNT(&cores));
}

}  // namespace

Neighbours find_local_ranks(Comm& world, const std::string& host, const std::string& launcher) {
  HostInfo mine{.host = hash_name(host)};
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0) CPU_SET(0, &mine.cores);
  const std::vector<HostInfo> hosts = all_gather_values(world, mine);
  Neighbours n;
  cpu_set_t all = mine.cores;
  int sharing = 0;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const HostInfo& c = hosts[rank];
    if (c.host != mine.host) continue;
    if (static_cast<int>(rank) == world.rank()) n.local_rank = static_cast<int>(n.ranks.size());
    n.ranks.push_back(static_cast<int>(rank));
    cpu_set_t both;
    CPU_OR(&all, &all, &c.cores);
    CPU_AND(&both, &c.cores, &mine.cores);
    sharing += CPU_COUNT(&both) > 0 ? 1 : 0;
  }
  n.cores = CPU_COUNT(&mine.cores);
  n.threads = std::max(1, n.cores / std::max(1, sharing));
  n.advice = advice_on(CPU_COUNT(&all), launcher);
  return n;
}

}  // namespace hlat
