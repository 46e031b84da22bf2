// The text of jobs for Slurm and Kubernetes: nodes and ranks, names, quoting, and what each option puts where.
#include "supervise/cluster_job.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "config/load.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

JobOptions options_of(int64_t nodes = 0, int64_t gpus = -1, int64_t ranks_per_node = 0) {
  JobOptions options;
  options.config_file = "c.yaml";
  options.image = "registry/hlat:1";
  options.nodes = nodes;
  options.gpus = gpus;
  options.ranks_per_node = ranks_per_node;
  return options;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ClusterJob, NodesAndRanks) {
  Config c;
  EXPECT_EQ(job_shape(c, options_of()), (JobShape{1, 8, 8}));
  EXPECT_EQ(job_shape(c, options_of(4)), (JobShape{4, 8, 8}));
  c.parallel.tp = 8;
  c.parallel.dp = 3;
  EXPECT_EQ(job_shape(c, options_of()), (JobShape{3, 8, 8}));
  c.launch.spares = 1;
  EXPECT_EQ(job_shape(c, options_of()), (JobShape{4, 8, 8}));
  EXPECT_EQ(message_of([&] { job_shape(c, options_of(3)); }),
            "24 ranks need 3 nodes of 8 and 1 spare, but the job has 3: give more with --nodes or --ranks-per-node");
  Config cpu;
  cpu.device.backend = "cpu";
  cpu.parallel.dp = 5;
  EXPECT_EQ(job_shape(cpu, options_of(2)), (JobShape{2, 3, 0}));
  EXPECT_EQ(job_shape(cpu, options_of()), (JobShape{1, 5, 0}));
  EXPECT_EQ(job_shape(cpu, options_of(0, 0, 2)), (JobShape{3, 2, 0}));
}

TEST(ClusterJob, NamesAreDnsLabels) {
  const auto name = [](const std::string& dir) {
    Config c;
    c.run.dir = dir;
    return job_name(c, {});
  };
  EXPECT_EQ(name("runs/Llama_7B.v2/"), "llama-7b-v2");
  EXPECT_EQ(name("/data/70b"), "hlat-70b");
  EXPECT_EQ(name("runs/__"), "hlat");
  EXPECT_EQ(name("runs/" + std::string(50, 'a')), std::string(40, 'a'));
}

TEST(ClusterJob, ShellWords) {
  EXPECT_EQ(shell_word("run.dir=/a/b"), "run.dir=/a/b");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(SlurmJob, OptionsBecomeLines) {
  Config c;
  c.run.dir = "runs/my run";
  c.checkpoint.grace_s = 90;
  JobOptions o = options_of(4);
  o.overrides = {"train.steps=10", "data.eos=</s> x"};
  std::string text = render_job("slurm", c, o);
  for (const char* line :
       {"#SBATCH --job-name=my-run\n", "#SBATCH --nodes=4\n", "#SBATCH --ntasks-per-node=8\n", "#SBATCH --gpus-per-node=8\n",
        "#SBATCH --time=24:00:00\n", "#SBATCH --requeue\n", "#SBATCH --no-kill\n", "#SBATCH --open-mode=append\n",
        "#SBATCH --signal=B:USR1@150\n", "run='runs/my run'\n", "export SLURM_MPI_TYPE=pmix", "export SLURM_CPU_BIND=none",
        "words=(--config c.yaml train.steps=10 'data.eos=</s> x')\n"})
    EXPECT_TRUE(has(text, line)) << line << "\n" << text;
  EXPECT_FALSE(has(text, "--partition") || has(text, "--account") || has(text, "cpus-per-task"));
  o.gpus = 0;
  o.ranks_per_node = 2;
  o.partition = "long";
  o.account = "lab";
  o.cpus = 6;
  o.time = "2-00:00:00";
  o.mpi = "pmi2";
  text = render_job("slurm", c, o);
  for (const char* line : {"#SBATCH --partition=long\n", "#SBATCH --account=lab\n", "#SBATCH --cpus-per-task=6\n",
                           "#SBATCH --time=2-00:00:00\n", "export SLURM_MPI_TYPE=pmi2", "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"})
    EXPECT_TRUE(has(text, line)) << line << "\n" << text;
  EXPECT_FALSE(has(text, "gpus-per-node") || has(text, "SLURM_CPU_BIND"));
  o.config_file.clear();
  EXPECT_EQ(message_of([&] { render_job("slurm", c, o); }), "--print slurm needs --config: the job reads it where it runs");
}

TEST(K8sJob, KindsAndOptions) {
  Config c;
  c.run.dir = "runs/seven";
  JobOptions o = options_of(3);
  o.resources = {"vpc.amazonaws.com/efa=4", "memory=900Gi"};
  o.local_path = "/mnt/nvme/hlat";
  std::vector<YAML::Node> documents = YAML::LoadAll(render_job("k8s", c, o));
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[1]["kind"].as<std::string>(), "PersistentVolumeClaim");
  const YAML::Node spec = documents[2]["spec"], pod = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
  EXPECT_EQ(spec["slotsPerWorker"].as<int>(), 8);
  EXPECT_EQ(spec["mpiReplicaSpecs"]["Worker"]["replicas"].as<int>(), 3);
  EXPECT_TRUE(has(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2].as<std::string>(), "touch /dev/shm/hlat-draining"));
  const YAML::Node limits = pod["containers"][0]["resources"]["limits"];
  EXPECT_EQ(limits["nvidia.com/gpu"].as<int>(), 8);
  EXPECT_EQ(limits["vpc.amazonaws.com/efa"].as<std::string>(), "4");
  EXPECT_EQ(limits["memory"].as<std::string>(), "900Gi");
  EXPECT_EQ(pod["volumes"][2]["hostPath"]["path"].as<std::string>(), "/mnt/nvme/hlat");
  EXPECT_EQ(pod["volumes"][1]["persistentVolumeClaim"]["claimName"].as<std::string>(), "seven-shared");
  const YAML::Node command = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"];
  EXPECT_EQ(command[4].as<std::string>(), "run.dir=/shared/runs/seven");
  // A claim that exists is used and not made; without GPUs and resources there are no limits.
  o.volume = "fsx";
  o.gpus = 0;
  o.resources.clear();
  o.local_path.clear();
  documents = YAML::LoadAll(render_job("k8s", c, o));
  ASSERT_EQ(documents.size(), 2u);
  const YAML::Node plain = documents[1]["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
  EXPECT_EQ(plain["volumes"][1]["persistentVolumeClaim"]["claimName"].as<std::string>(), "fsx");
  EXPECT_TRUE(plain["volumes"][2]["emptyDir"].IsMap());
  EXPECT_FALSE(plain["containers"][0]["resources"].IsDefined());
  o.resources = {"efa"};
  EXPECT_EQ(message_of([&] { render_job("k8s", c, o); }),
            "--resource efa: a resource is written name=amount, like vpc.amazonaws.com/efa=4");
  o.image.clear();
  EXPECT_EQ(message_of([&] { render_job("k8s", c, o); }), "--print k8s needs --image: a container image with hlat, Open MPI and sshd");
}

// The launcher reads the very config that was printed.
TEST(K8sJob, ConfigMapHoldsTheConfig) {
  Config c;
  c.train.steps = 77;
  c.parallel.tp = 2;
  const test::TempDir dir;
  const std::string file =
      dir.write("c.yaml", YAML::LoadAll(render_job("k8s", c, options_of()))[0]["data"]["config.yaml"].as<std::string>());
  EXPECT_EQ(load_config(file).config, c);
}

}  // namespace
}  // namespace hlat
