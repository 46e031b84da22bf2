// Launchers told apart by their environment, and what is said about environments that make no sense.
#include "runtime/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace hlat {
namespace {

using Vars = std::map<std::string, std::string>;

Environment environment(const Vars& vars) {
  return [&vars](const char* name) -> const char* {
    const auto place = vars.find(name);
    return place == vars.end() ? nullptr : place->second.c_str();
  };
}

Launch detect(const Vars& vars) { return detect_launch(environment(vars)); }

std::string refusal(const Vars& vars) {
  try {
    detect(vars);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Vars with(Vars vars, const Vars& more) {
  for (const auto& [name, value] : more) vars[name] = value;
  return vars;
}

const Vars kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
const Vars kTorchrun = {{"RANK", "3"}, {"WORLD_SIZE", "4"}};
// A step of 11 tasks in an allocation for 64.
const Vars kSlurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "9"}, {"SLURM_STEP_NUM_TASKS", "11"}, {"SLURM_NTASKS", "64"}};

TEST(Launch, ByHandIsOneRank) {
  EXPECT_EQ(detect({}), Launch{});
  EXPECT_EQ(detect({{"RANK", ""}, {"WORLD_SIZE", ""}}), Launch{});
}

TEST(Launch, Mpirun) {
  EXPECT_EQ(detect(kOpenMpi), (Launch{5, 8, "mpirun"}));
  EXPECT_EQ(detect({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}}), (Launch{2, 3, "mpirun"}));
}

TEST(Launch, Torchrun) { EXPECT_EQ(detect(kTorchrun), (Launch{3, 4, "torchrun"})); }

TEST(Launch, Srun) {
  EXPECT_EQ(detect(kSlurm), (Launch{9, 11, "srun"}));
  Vars old = kSlurm;
  old.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(detect(old), (Launch{9, 64, "srun"}));
}

TEST(Launch, ASlurmShellIsNoLaunch) {
  Vars shell = kSlurm;
  shell.erase("SLURM_STEP_ID");
  EXPECT_EQ(detect(shell), Launch{});
  EXPECT_EQ(detect({{"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "17"}}), Launch{});
  // salloc may put its shell into a step of its own.
  EXPECT_EQ(detect(with(kSlurm, {{"SLURM_STEP_ID", "4294967290"}})), Launch{});
  EXPECT_EQ(detect(with(shell, kOpenMpi)).by, "mpirun");
}

TEST(Launch, TheInnerLauncherCounts) {
  EXPECT_EQ(detect(with(kSlurm, kOpenMpi)), detect(kOpenMpi));
  EXPECT_EQ(detect(with(kSlurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}})), (Launch{2, 3, "mpirun"}));
  // srun with PMI-2: the same ranks twice, and Slurm is the launcher.
  EXPECT_EQ(detect(with(kSlurm, {{"PMI_RANK", "9"}, {"PMI_SIZE", "11"}})), detect(kSlurm));
  const Vars elastic = with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}});
  EXPECT_EQ(detect(with(kSlurm, elastic)), detect(kTorchrun));
  EXPECT_EQ(detect(with(kOpenMpi, elastic)), detect(kTorchrun));
  // A script that hands mpirun's ranks on.
  EXPECT_EQ(detect(with(kOpenMpi, {{"RANK", "5"}, {"WORLD_SIZE", "8"}})), detect(kOpenMpi));
}

TEST(Launch, Refusals) {
  struct Case {
    Vars vars;
    std::string expected;
  };
  const std::string ranks = "must be an integer from 0 to 2147483647", counts = "must be an integer from 1 to 2147483647";
  const std::vector<Case> cases = {
      {{{"RANK", "0"}}, "environment variable RANK is set but WORLD_SIZE is not: set both to join a launch, or neither"},
      {{{"PMI_SIZE", "2"}}, "environment variable PMI_SIZE is set but PMI_RANK is not: set both to join a launch, or neither"},
      {{{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "environment variable RANK = x: " + ranks},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "environment variable RANK = -1: " + ranks},
      {{{"RANK", "1 "}, {"WORLD_SIZE", "2"}}, "environment variable RANK = 1 : " + ranks},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "environment variable WORLD_SIZE = 0: " + counts},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4294967296"}}, "environment variable WORLD_SIZE = 4294967296: " + counts},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "environment variable RANK = 2: must be less than WORLD_SIZE (2)"},
      {with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "8"}}),
       "environment variable OMPI_COMM_WORLD_RANK = 8: must be less than OMPI_COMM_WORLD_SIZE (8)"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}}, "environment variable SLURM_STEP_ID is set but SLURM_PROCID is not"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}}, "environment variable SLURM_STEP_ID is set but SLURM_NTASKS is not"},
      {with(kSlurm, {{"SLURM_STEP_ID", "a"}}), "environment variable SLURM_STEP_ID = a: must be an integer of at least 0"},
      {with(kSlurm, {{"SLURM_PROCID", "11"}}), "environment variable SLURM_PROCID = 11: must be less than SLURM_STEP_NUM_TASKS (11)"},
      {with(kOpenMpi, kTorchrun),
       "environment variables RANK = 3 and WORLD_SIZE = 4 contradict mpirun, which started rank 5 of 8: unset those that are left over"},
      {with(kSlurm, kTorchrun),
       "environment variables RANK = 3 and WORLD_SIZE = 4 contradict srun, which started rank 9 of 11: unset those that are left over"},
      {with(kOpenMpi, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}),
       "environment variables PMI_RANK = 0 and PMI_SIZE = 1 contradict Open MPI's mpirun, which started rank 5 of 8: unset those that are "
       "left over"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(c.vars), c.expected);
}

TEST(Launch, SeveralRanksNeedMpi) {
  const auto complaint = [](const Vars& vars) -> std::string {
    try {
      check_rendezvous(detect(vars), environment(vars));
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(complaint({}), "");
  EXPECT_EQ(complaint(kOpenMpi), "");
  EXPECT_EQ(complaint({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "");
  EXPECT_EQ(complaint(with(kOpenMpi, {{"RANK", "5"}, {"WORLD_SIZE", "8"}})), "");
  EXPECT_NE(complaint(kTorchrun).find("rank 3 of 4, but hlat's ranks meet through MPI: start them with mpirun -n 4"), std::string::npos);
  EXPECT_NE(complaint(kSlurm).find("srun started 11 ranks without MPI: start them with srun --mpi=pmix"), std::string::npos);
  EXPECT_EQ(complaint(with(kSlurm, {{"PMIX_RANK", "9"}})), "");
  EXPECT_EQ(complaint(with(kSlurm, {{"PMI_RANK", "9"}, {"PMI_SIZE", "11"}})), "");
}

}  // namespace
}  // namespace hlat
