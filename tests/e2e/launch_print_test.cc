// hlat launch --print: what comes out is a script that bash reads, or a manifest; what is missing is named.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

TEST(LaunchPrint, SlurmScriptIsOneForBash) {
  const RunResult r =
      run_binary({"launch", "--config", nano_config(), "run.dir=it's here", "--print", "slurm", "--nodes", "2", "--gpus", "4"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.out.find("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n"), std::string::npos) << r.out;
  const TempDir dir;
  EXPECT_EQ(std::system(("bash -n '" + dir.write("job.sh", r.out) + "'").c_str()), 0) << r.out;
}

TEST(LaunchPrint, K8sManifestHasThreeKinds) {
  const RunResult r = run_binary({"launch", "--config", nano_config(), "--print", "k8s", "--image", "hlat:1", "--resource", "a.com/x=1",
                                  "--resource", "memory=8Gi", "--nodes", "3"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<YAML::Node> documents = YAML::LoadAll(r.out);
  ASSERT_EQ(documents.size(), 3u) << r.out;
  EXPECT_EQ(documents[2]["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"].as<int>(), 3);
  EXPECT_NE(r.out.find("\"memory\": \"8Gi\""), std::string::npos) << r.out;
}

TEST(LaunchPrint, WhatIsMissingIsNamed) {
  const RunResult image = run_binary({"launch", "--config", nano_config(), "--print", "k8s"});
  EXPECT_EQ(image.exit_code, 2);
  EXPECT_NE(image.err.find("--print k8s needs --image"), std::string::npos) << image.err;
  const RunResult alone = run_binary({"launch", "--config", nano_config(), "--nodes", "4"});
  EXPECT_EQ(alone.exit_code, 2) << alone.out;
  EXPECT_NE(alone.err.find("--print"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace hlat::test
