#include "supervise/rank_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <utility>

#include "supervise/agents.h"
#include "supervise/child.h"

namespace hlat {

namespace {

int ranks_of(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const Host& h) { return sum + h.slots; });
}

std::vector<std::string> mpirun_words(const RankCommand& c, const LaunchConfig& launch, bool as_root) {
  std::vector<std::string> words{"mpirun"};
  if (as_root) words.emplace_back("--allow-run-as-root");
  std::vector<std::string> hosts;
  for (const Host& h : c.hosts) hosts.push_back(fmt::format("{}:{}", h.name, h.slots));
  // Ranks fill a host before the next one: tp groups are neighbours in rank order.
  for (const std::string& w :
       {std::string("-n"), std::to_string(ranks_of(c.hosts)), std::string("--host"), fmt::format("{}", fmt::join(hosts, ",")),
        std::string("--map-by"), std::string("slot"), std::string("--bind-to"), std::string("none")})
    words.push_back(w);
  const auto set = [&](const char* key, const std::string& value) {
    words.emplace_back("--mca");
    words.emplace_back(key);
    words.push_back(value);
  };
  set("odls_base_sigkill_timeout", std::to_string(c.grace_s));
  if (launch.remote != "ssh") set("plm_rsh_agent", launch.remote);
  for (const auto& [name, value] : c.variables) {
    words.emplace_back("-x");
    words.push_back(name);
  }
  for (const std::string& w : split_words(launch.mpirun)) words.push_back(w);
  return words;
}

// Ranks are placed by SLURM_HOSTFILE: hosts may take different numbers of them. A node that is lost does not end the others' ranks, nor the
// job: that is for the launcher to decide.
std::vector<std::string> srun_words(const RankCommand& c) {
  std::vector<std::string> words{"srun"};
  if (!c.mpi_is_set) words.emplace_back("--mpi=pmix");
  for (const std::string& w : {std::string("--overlap"), std::string("--quiet"), std::string("--kill-on-bad-exit=0"),
                               std::string("--no-kill"), std::string("--cpu-bind=none"), std::string("--distribution=arbitrary"),
                               fmt::format("--nodes={}", c.hosts.size()), fmt::format("--ntasks={}", ranks_of(c.hosts))})
    words.push_back(w);
  return words;
}

}  // namespace

std::string srun_hostfile(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& h : hosts)
    for (int i = 0; i < h.slots; ++i) text += h.name + "\n";
  return text;
}

Starter starter_of(const LaunchConfig& launch, const std::vector<Host>& hosts, bool in_slurm_job) {
  if (launch.starter == "srun" || (launch.starter == "auto" && in_slurm_job)) return Starter::srun;
  const bool alone = ranks_of(hosts) == 1 && is_this_host(hosts.front().name);
  return alone && launch.starter == "auto" ? Starter::direct : Starter::mpirun;
}

RankCommand rank_command(std::vector<std::string> words, const std::vector<Host>& hosts, Starter starter,
                         std::map<std::string, std::string> variables, int64_t grace_s, const std::filesystem::path& folder) {
  if (starter == Starter::srun) {
    const std::filesystem::path file = std::filesystem::absolute(folder / "hostfile");
    std::ofstream(file) << srun_hostfile(hosts);
    variables["SLURM_HOSTFILE"] = file.string();
  }
  const char* mpi = std::getenv("SLURM_MPI_TYPE");
  return {.train = std::move(words),
          .hosts = hosts,
          .variables = std::move(variables),
          .grace_s = grace_s,
          .mpi_is_set = mpi != nullptr && *mpi != 0};
}

std::vector<std::string> start_words(const RankCommand& command, Starter starter, const LaunchConfig& launch, bool as_root) {
  std::vector<std::string> words;
  if (starter == Starter::mpirun) words = mpirun_words(command, launch, as_root);
  if (starter == Starter::srun) words = srun_words(command);
  words.insert(words.end(), command.train.begin(), command.train.end());
  return words;
}

}  // namespace hlat
