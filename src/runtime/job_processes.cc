#include "runtime/job_processes.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string_view>

namespace hlat {

namespace {

namespace fs = std::filesystem;

// PMIx is what Open MPI and srun --mpi=pmix speak.
struct JobNames {
  const char *job, *step, *rank;
};
constexpr JobNames kPmix{"PMIX_NAMESPACE", nullptr, "PMIX_RANK"}, kSlurm{"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"};

using Variables = std::map<std::string, std::string>;

Variables environment_of(const fs::path& process) {
  std::ifstream in(process / "environ", std::ios::binary);
  Variables out;
  for (std::string entry; std::getline(in, entry, '\0');)
    if (const size_t eq = entry.find('='); eq != std::string::npos) out[entry.substr(0, eq)] = entry.substr(eq + 1);
  return out;
}

char state_of(const fs::path& process) {
  std::ifstream in(process / "stat");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
}

int number_in(const std::string& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

bool equal(const Variables& theirs, const Environment& ours, const char* name) {
  const auto found = theirs.find(name);
  return found != theirs.end() && ours(name) != nullptr && found->second == ours(name);
}

}  // namespace

std::map<int, JobProcess> job_processes(const Environment& env) {
  const JobNames& names = env(kPmix.job) != nullptr ? kPmix : kSlurm;
  std::map<int, JobProcess> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const int pid = number_in(entry.path().filename());
    if (pid < 0) continue;
    const Variables theirs = environment_of(entry.path());  // empty for a process that is gone, or a zombie
    const auto rank = theirs.find(names.rank);
    if (rank == theirs.end() || !equal(theirs, env, names.job) || (names.step != nullptr && !equal(theirs, env, names.step))) continue;
    const JobProcess process{.pid = pid, .state = state_of(entry.path())};
    // A rank may be a script and its child: a stopped one tells more.
    if (const int number = number_in(rank->second); number >= 0 && (!found.contains(number) || process.state == 'T'))
      found[number] = process;
  }
  return found;
}

Absent absent_ranks(const std::map<int, JobProcess>& found, const std::vector<int>& expected) {
  Absent absent;
  if (found.empty()) return absent;
  for (const int rank : expected) {
    const auto it = found.find(rank);
    const bool gone = it == found.end(), stopped = !gone && (it->second.state == 'T' || it->second.state == 't');
    if (!gone && !stopped) continue;
    absent.ranks.push_back(rank);
    absent.words += absent.words.empty() ? "" : ", ";
    absent.words += gone ? fmt::format("rank {} is gone", rank) : fmt::format("rank {} (process {}) is stopped", rank, it->second.pid);
  }
  return absent;
}

std::vector<int> expected_here(const Launch& launch, const Environment& env, const std::map<int, JobProcess>& found) {
  std::vector<int> ranks;
  const char* local = env("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (local != nullptr && number_in(local) == launch.ranks) {
    ranks.resize(static_cast<size_t>(launch.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
  } else {
    for (const auto& [rank, process] : found) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace hlat
