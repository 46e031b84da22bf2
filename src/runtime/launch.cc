#include "runtime/launch.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace hlat {
namespace {

// The variables of one launcher.
struct Names {
  const char* by;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks;
};

constexpr Names kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kHydra = {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

constexpr int kMaxRanks = 2147483647;
constexpr int64_t kFirstSpecialStep = 0xfffffff0;  // Slurm's steps for batch scripts and interactive shells

// A variable that is set to nothing counts as not set.
std::optional<std::string_view> text(const Environment& env, const char* name) {
  const char* value = env(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

template <class Integer>
bool read_integer(std::string_view digits, Integer& out) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, out);
  return error == std::errc() && stop == end;
}

std::optional<int> number(const Environment& env, const char* name, int lo) {
  const auto value = text(env, name);
  if (!value) return std::nullopt;
  int n = 0;
  if (!read_integer(*value, n) || n < lo)
    fail("environment variable {} = {}: must be an integer from {} to {}", name, *value, lo, kMaxRanks);
  return n;
}

void check_below(const char* name, int value, const char* limit_name, int limit) {
  if (value >= limit) fail("environment variable {} = {}: must be less than {} ({})", name, value, limit_name, limit);
}

std::optional<Launch> read_launch(const Environment& env, const Names& n) {
  const std::optional<int> rank = number(env, n.rank, 0), ranks = number(env, n.ranks, 1);
  if (!rank && !ranks) return std::nullopt;
  if (!rank || !ranks)
    fail("environment variable {} is set but {} is not: set both to join a launch, or neither", rank ? n.rank : n.ranks,
         rank ? n.ranks : n.rank);
  check_below(n.rank, *rank, n.ranks, *ranks);
  const int local_ranks = number(env, n.local_ranks, 1).value_or(*ranks);
  const int local_rank = number(env, n.local_rank, 0).value_or(local_ranks == 1 ? 0 : *rank);
  if (local_ranks > *ranks) fail("environment variable {} = {}: must not exceed {} ({})", n.local_ranks, local_ranks, n.ranks, *ranks);
  check_below(n.local_rank, local_rank, n.local_ranks, local_ranks);
  return Launch{*rank, *ranks, local_rank, local_ranks, n.by};
}

// The tasks of node number `node` in Slurm's short form, "4(x2),3" for 4, 4 and 3.
int tasks_on_node(const char* name, std::string_view list, int node) {
  const std::string_view whole = list;
  while (!list.empty()) {
    std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    int tasks = 0, nodes = 1;
    const size_t open = part.find("(x");
    const bool repeated = open != std::string_view::npos && part.ends_with(')');
    if (repeated && !read_integer(part.substr(open + 2, part.size() - open - 3), nodes)) break;
    if (!read_integer(repeated ? part.substr(0, open) : part, tasks) || tasks < 1 || nodes < 1) break;
    if (node < nodes) return tasks;
    node -= nodes;
  }
  fail("environment variable {} = {}: does not tell the tasks of this node", name, whole);
}

// Only inside a step that srun started: the other variables are set in every shell of an allocation.
bool in_slurm_step(const Environment& env) {
  const auto step = text(env, "SLURM_STEP_ID");
  if (!step) return false;
  int64_t id = 0;
  if (!read_integer(*step, id) || id < 0) fail("environment variable SLURM_STEP_ID = {}: must be an integer of at least 0", *step);
  return id < kFirstSpecialStep;
}

std::optional<Launch> read_slurm(const Environment& env) {
  if (!in_slurm_step(env)) return std::nullopt;
  const char* size = text(env, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const std::optional<int> rank = number(env, "SLURM_PROCID", 0), ranks = number(env, size, 1);
  if (!rank || !ranks) fail("environment variable SLURM_STEP_ID is set but {} is not", rank ? size : "SLURM_PROCID");
  check_below("SLURM_PROCID", *rank, size, *ranks);

  const std::optional<int> node = number(env, "SLURM_NODEID", 0), local_rank = number(env, "SLURM_LOCALID", 0);
  const auto per_node = text(env, "SLURM_STEP_TASKS_PER_NODE");
  Launch launch{*rank, *ranks, local_rank.value_or(*rank), *ranks, "srun"};
  if (per_node && node) {
    launch.local_ranks = tasks_on_node("SLURM_STEP_TASKS_PER_NODE", *per_node, *node);
    if (!local_rank) launch.local_rank = launch.local_ranks == 1 ? 0 : *rank;
  } else if (const auto wanted = number(env, "SLURM_NTASKS_PER_NODE", 1)) {
    launch.local_ranks = std::min(*wanted, *ranks);  // of the allocation; a step may be smaller
  }
  check_below("SLURM_LOCALID", launch.local_rank, "the tasks on this node", launch.local_ranks);
  return launch;
}

bool agree(const Launch& a, const Launch& b) { return a.rank == b.rank && a.ranks == b.ranks; }

void check_agree(const Launch& a, const Names& names, const Launch& b, std::string_view other) {
  if (!agree(a, b))
    fail("environment variables {} = {} and {} = {} contradict {}, which started rank {} of {}: unset those that are left over", names.rank,
         a.rank, names.ranks, a.ranks, other, b.rank, b.ranks);
}

std::optional<Launch> read_mpi(const Environment& env) {
  const std::optional<Launch> open_mpi = read_launch(env, kOpenMpi), hydra = read_launch(env, kHydra);
  if (open_mpi && hydra) check_agree(*hydra, kHydra, *open_mpi, "Open MPI's mpirun");
  return open_mpi ? open_mpi : hydra;
}

}  // namespace

Launch detect_launch(const Environment& env) {
  const std::optional<Launch> torchrun = read_launch(env, kTorchrun);
  // torchrun itself may have been started once per node by srun or mpirun.
  if (torchrun && text(env, "TORCHELASTIC_RUN_ID")) return *torchrun;
  std::optional<Launch> other = read_mpi(env);
  // mpirun may use srun to start its helpers, and srun may speak Hydra's protocol without the local values.
  if (!other || !text(env, kOpenMpi.rank)) {
    const std::optional<Launch> slurm = read_slurm(env);
    if (slurm && (!other || agree(*slurm, *other))) other = slurm;
  }
  if (torchrun && other) check_agree(*torchrun, kTorchrun, *other, other->by);
  return other ? *other : torchrun.value_or(Launch{});
}

void check_meets(const Launch& launch, const Environment& env) {
  if (launch.ranks == 1) return;
  if (launch.by == kTorchrun.by)
    throw UsageError(
        fmt::format("RANK and WORLD_SIZE say that this is rank {} of {}, but hlat's ranks meet through MPI: start them with mpirun -n {}, "
                    "or unset both variables for a run of one process",
                    launch.rank, launch.ranks, launch.ranks));
  if (launch.by == "srun" && !text(env, "PMIX_RANK") && !text(env, kHydra.rank))
    throw UsageError(
        fmt::format("srun started {} ranks without MPI: start them with srun --mpi=pmix, or with mpirun inside the job", launch.ranks));
}

}  // namespace hlat
