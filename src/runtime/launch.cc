#include "runtime/launch.h"

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
};

constexpr Names kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr Names kHydra = {"mpirun", "PMI_RANK", "PMI_SIZE"};
constexpr Names kTorchrun = {"torchrun", "RANK", "WORLD_SIZE"};

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
    fail<UsageError>("environment variable {} = {}: must be an integer from {} to {}", name, *value, lo, kMaxRanks);
  return n;
}

void check_below(const char* name, int value, const char* limit_name, int limit) {
  if (value >= limit) fail<UsageError>("environment variable {} = {}: must be less than {} ({})", name, value, limit_name, limit);
}

std::optional<Launch> read_launch(const Environment& env, const Names& n) {
  const std::optional<int> rank = number(env, n.rank, 0), ranks = number(env, n.ranks, 1);
  if (!rank && !ranks) return std::nullopt;
  if (!rank || !ranks)
    fail<UsageError>("environment variable {} is set but {} is not: set both to join a launch, or neither", rank ? n.rank : n.ranks,
                     rank ? n.ranks : n.rank);
  check_below(n.rank, *rank, n.ranks, *ranks);
  return Launch{*rank, *ranks, n.by};
}

// Only inside a step that srun started: the other variables are set in every shell of an allocation.
bool in_slurm_step(const Environment& env) {
  const auto step = text(env, "SLURM_STEP_ID");
  if (!step) return false;
  int64_t id = 0;
  if (!read_integer(*step, id) || id < 0)
    fail<UsageError>("environment variable SLURM_STEP_ID = {}: must be an integer of at least 0", *step);
  return id < kFirstSpecialStep;
}

std::optional<Launch> read_slurm(const Environment& env) {
  if (!in_slurm_step(env)) return std::nullopt;
  const char* size = text(env, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const std::optional<int> rank = number(env, "SLURM_PROCID", 0), ranks = number(env, size, 1);
  if (!rank || !ranks) fail<UsageError>("environment variable SLURM_STEP_ID is set but {} is not", rank ? size : "SLURM_PROCID");
  check_below("SLURM_PROCID", *rank, size, *ranks);
  return Launch{*rank, *ranks, "srun"};
}

bool agree(const Launch& a, const Launch& b) { return a.rank == b.rank && a.ranks == b.ranks; }

void check_agree(const Launch& a, const Names& names, const Launch& b, std::string_view other) {
  if (!agree(a, b))
    fail<UsageError>("environment variables {} = {} and {} = {} contradict {}, which started rank {} of {}: unset those that are left over",
                     names.rank, a.rank, names.ranks, a.ranks, other, b.rank, b.ranks);
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
  // mpirun may use srun to start its helpers, and srun may speak Hydra's protocol.
  if (!other || !text(env, kOpenMpi.rank)) {
    const std::optional<Launch> slurm = read_slurm(env);
    if (slurm && (!other || agree(*slurm, *other))) other = slurm;
  }
  if (torchrun && other) check_agree(*torchrun, kTorchrun, *other, other->by);
  return other ? *other : torchrun.value_or(Launch{});
}

void check_rendezvous(const Launch& launch, const Environment& env) {
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
