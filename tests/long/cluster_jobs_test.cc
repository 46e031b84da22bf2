// Jobs for clusters, tried: the batch script on a real Slurm cluster of this machine (slurm.sh), the manifest against the schemas of
// Kubernetes (check_k8s.py).
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/load.h"
#include "supervise/cluster_job.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

constexpr int kRefused = 77;
constexpr int kSteps = 1000;

constexpr const char* kTiny = R"(model: {layers: 4, hidden: 64, heads: 8, kv_heads: 2, ffn: 84, vocab: 512}
train: {seq_len: 32, global_batch: 8, micro_batch: 1}
optim: {lr: 2e-3, warmup: 2}
run: {tensorboard: false, sample_lines: 0}
device: {backend: cpu, threads: 1}
)";

// What a shell makes of it, in the folder; output goes to the file `output` there.
int shell(const TempDir& dir, const std::string& command) {
  const int status = std::system(("cd '" + dir.path() + "' && { " + command + "; } >output 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<nlohmann::json> lines_of(const std::string& file) {
  std::istringstream text(slurp(file));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

void write_slurm_job(const TempDir& dir, const std::string& run) {
  JobOptions options;
  options.config_file = "tiny.yaml";
  options.overrides = {"run.dir=" + run, "train.steps=" + std::to_string(kSteps)};
  options.nodes = 2;
  options.gpus = 0;
  options.ranks_per_node = 1;
  options.time = "10:00";
  dir.write(run + ".sh", render_job("slurm", load_config(dir.path("tiny.yaml"), options.overrides).config, options));
}

// A node that fails its check is left out; a signal ends the run with a save; the job is queued again by itself; and nothing of it
// changes a bit of the weights.
TEST(SlurmCluster, PreemptedJobIsQueuedAgainAndEndsAsTheStraightOne) {
  const TempDir dir;
  dir.write("tiny.yaml", kTiny);
  write_slurm_job(dir, "straight");
  write_slurm_job(dir, "preempted");
  const std::string tests = source_path("tests/long/");
  const int status = shell(dir, tests + "slurm.sh " + tests + "slurm_preempt.sh " + hlat_binary() + " " + std::to_string(kSteps));
  if (status == kRefused) GTEST_SKIP() << slurp(dir.path("output"));
  ASSERT_EQ(status, 0) << slurp(dir.path("output"));

  const std::string job = slurp(dir.path("preempted.job")), log = slurp(dir.path("preempted.log"));
  for (const char* part : {"JobState=COMPLETED", "Restarts=1", "ExcNodeList=n1", "ExitCode=0:0"})
    EXPECT_NE(job.find(part), std::string::npos) << part << "\n" << job << log;
  EXPECT_NE(log.find("hlat check ended with code 4 on n1: a wrong matmul"), std::string::npos) << log;
  EXPECT_EQ(slurp(dir.path("preempted/excluded_nodes")), "n1\n");

  int saved = 0, started = 0;
  for (const nlohmann::json& event : lines_of(dir.path("preempted/events.jsonl"))) {
    saved += event["kind"] == "end" && event["exit_code"] == 6;
    started += event["kind"] == "start";
  }
  EXPECT_GE(saved, 1) << log;
  EXPECT_GE(started, 2) << log;
  const auto straight = lines_of(dir.path("straight/metrics.jsonl")), preempted = lines_of(dir.path("preempted/metrics.jsonl"));
  ASSERT_EQ(straight.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(preempted.size(), straight.size());
  for (size_t i = 0; i < straight.size(); ++i) ASSERT_EQ(preempted[i]["loss"].dump(), straight[i]["loss"].dump()) << "step " << i + 1;
  EXPECT_EQ(shell(dir, hlat_binary() + " ckpt diff --exit-code straight preempted"), 0) << slurp(dir.path("output"));
}

class K8sManifest : public testing::Test {
 protected:
  void SetUp() override {
    if (shell(dir_, kPython + " -c 'import kubernetes_validate'") != 0)
      GTEST_SKIP() << "kubernetes-validate is not in .venv-build: tools/setup_k8s.sh";
    options_.image = "registry/hlat:1";
    options_.nodes = 4;
    options_.resources = {"vpc.amazonaws.com/efa=4"};
  }
  int check(const std::string& manifest, const std::string& kinds) const {
    dir_.write("job.yaml", manifest);
    return shell(dir_, kPython + " " + source_path("tests/long/check_k8s.py") + " job.yaml " + kinds);
  }
  std::string output() const { return slurp(dir_.path("output")); }

  static inline const std::string kPython = source_path(".venv-build/bin/python");
  TempDir dir_;
  JobOptions options_;
};

TEST_F(K8sManifest, FitsTheSchemas) {
  const Config config;
  EXPECT_EQ(check(render_job("k8s", config, options_), "ConfigMap PersistentVolumeClaim MPIJob"), 0) << output();
  options_.storage_class = "efs";
  options_.local_path = "/mnt/nvme";
  EXPECT_EQ(check(render_job("k8s", config, options_), "ConfigMap PersistentVolumeClaim MPIJob"), 0) << output();
  options_.volume = "fsx";
  options_.gpus = 0;
  options_.ranks_per_node = 2;
  options_.resources.clear();
  EXPECT_EQ(check(render_job("k8s", config, options_), "ConfigMap MPIJob"), 0) << output();
}

// The check finds what it is there for.
TEST_F(K8sManifest, WrongFieldsAreFound) {
  const std::string good = render_job("k8s", Config{}, options_);
  const auto wrong = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    EXPECT_EQ(check(text, "ConfigMap PersistentVolumeClaim MPIJob"), 1) << to;
    return output();
  };
  EXPECT_NE(wrong("accessModes", "accessMode").find("PersistentVolumeClaim"), std::string::npos) << output();
  EXPECT_NE(wrong("slotsPerWorker", "slots").find("spec.slots is not a field"), std::string::npos) << output();
  EXPECT_NE(wrong("cleanPodPolicy: Running", "cleanPodPolicy: Always").find("cleanPodPolicy = Always"), std::string::npos) << output();
  EXPECT_NE(wrong("readinessProbe:", "readyProbe:").find("pod of the Worker"), std::string::npos) << output();
  EXPECT_NE(wrong("terminationGracePeriodSeconds: ", "terminationGracePeriodSeconds: x").find("pod of the Launcher"), std::string::npos);
  EXPECT_NE(wrong("- {name: shm, mountPath", "- {name: memory, mountPath").find("no volume memory"), std::string::npos) << output();
}

}  // namespace
}  // namespace hlat::test
