#include "supervise/k8s_job.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/print.h"

namespace hlat {
namespace {

// What the templates below are filled with.
struct Manifest {
  std::string name, image, claim;
  JobShape shape;
  int64_t grace_s = 0;
  std::string run, cache;  // volumes
  std::string resources;   // of a worker
  std::string storage, storage_class;
};

// Text as it stands in YAML: a JSON string is one.
std::string yaml_text(const std::string& text) { return nlohmann::json(text).dump(); }

std::string indented(const std::string& text, size_t spaces) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) out += std::string(spaces, ' ') + text.substr(begin, end - begin);
    out += '\n';
    begin = end + 1;
  }
  return out;
}

// ssh between pods of the job: their keys come with the job, their names and host keys with each pod.
std::string config_map(const Manifest& m, const std::string& config) {
  return fmt::format(R"(apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}-config
data:
  config.yaml: |
{config}  ssh.conf: |
    Host *
      StrictHostKeyChecking no
      UserKnownHostsFile /dev/null
      LogLevel ERROR
      ConnectionAttempts 10
  sshd.conf: |
    StrictModes no
    MaxStartups 1000
)",
                     fmt::arg("name", m.name), fmt::arg("config", indented(config, 4)));
}

std::string volume_claim(const Manifest& m) {
  return fmt::format(R"(---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {claim}
spec:
  accessModes: [ReadWriteMany]
{storage_class}  resources:
    requests:
      storage: {storage}
)",
                     fmt::arg("claim", m.claim), fmt::arg("storage", yaml_text(m.storage)),
                     fmt::arg("storage_class", m.storage_class.empty() ? "" : "  storageClassName: " + yaml_text(m.storage_class) + "\n"));
}

std::string mpi_job_head(const Manifest& m, int64_t restarts) {
  return fmt::format(R"(---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: {name}
spec:
  slotsPerWorker: {slots}
  sshAuthMountPath: /root/.ssh
  launcherCreationPolicy: WaitForWorkersReady
  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: {restarts}  # starts of the launcher; those of the ranks are launch.restarts
  mpiReplicaSpecs:
)",
                     fmt::arg("name", m.name), fmt::arg("slots", m.shape.ranks_per_node), fmt::arg("restarts", restarts));
}

// The launcher's words: paths of the pods in place of those of the config.
std::string launcher(const Manifest& m, const JobOptions& options) {
  return fmt::format(R"(    Launcher:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          terminationGracePeriodSeconds: {grace}
          containers:
          - name: launcher
            image: {image}
            command:
            - {program}
            - launch
            - --config
            - /config/config.yaml
            - {run_dir}
            - data.cache_dir=/cache/data
            - launch.starter=mpirun
            - launch.mpirun=-x XDG_CACHE_HOME=/cache
            env:
            - {{name: OMPI_ALLOW_RUN_AS_ROOT, value: "1"}}
            - {{name: OMPI_ALLOW_RUN_AS_ROOT_CONFIRM, value: "1"}}
            volumeMounts:
            - {{name: config, mountPath: /config}}
            - {{name: config, mountPath: /etc/ssh/ssh_config.d/hlat.conf, subPath: ssh.conf}}
            - {{name: shared, mountPath: /shared}}
          volumes:
          - {{name: config, configMap: {{name: {name}-config}}}}
          - {{name: shared, persistentVolumeClaim: {{claimName: {claim}}}}}
)",
                     fmt::arg("name", m.name), fmt::arg("image", yaml_text(m.image)), fmt::arg("claim", m.claim),
                     fmt::arg("program", yaml_text(options.program)), fmt::arg("run_dir", yaml_text("run.dir=" + m.run)),
                     fmt::arg("grace", m.grace_s + 30));
}

// A worker waits for ssh. When its pod is to end, the ranks are told, and have the grace period to save; none are started there any more.
std::string worker(const Manifest& m) {
  return fmt::format(R"(    Worker:
      replicas: {nodes}
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: {grace}
          initContainers:
          - name: fill-cache  # what the shared cache has, without the network from now on
            image: {image}
            command: [sh, -c, "mkdir -p /shared/cache/data /cache && cp -ru /shared/cache/. /cache/"]
            volumeMounts:
            - {{name: shared, mountPath: /shared}}
            - {{name: cache, mountPath: /cache}}
          containers:
          - name: worker
            image: {image}
            command: [sh, -c, "mkdir -p /run/sshd && ssh-keygen -A && exec /usr/sbin/sshd -De"]
            readinessProbe:
              tcpSocket: {{port: 22}}
            lifecycle:
              preStop:
                exec:
                  command: [sh, -c, "touch /dev/shm/hlat-draining; pkill -USR1 -f 'hlat trai[n]'; while pgrep -f 'hlat trai[n]'; do sleep 1; done"]
            securityContext:
              capabilities: {{add: [IPC_LOCK]}}
{resources}            volumeMounts:
            - {{name: config, mountPath: /config}}
            - {{name: config, mountPath: /etc/ssh/ssh_config.d/hlat.conf, subPath: ssh.conf}}
            - {{name: config, mountPath: /etc/ssh/sshd_config.d/hlat.conf, subPath: sshd.conf}}
            - {{name: shared, mountPath: /shared}}
            - {{name: cache, mountPath: /cache}}
            - {{name: shm, mountPath: /dev/shm}}
          volumes:
          - {{name: config, configMap: {{name: {name}-config}}}}
          - {{name: shared, persistentVolumeClaim: {{claimName: {claim}}}}}
          - {{name: cache, {cache}}}
          - {{name: shm, emptyDir: {{medium: Memory}}}}
)",
                     fmt::arg("name", m.name), fmt::arg("nodes", m.shape.nodes), fmt::arg("image", yaml_text(m.image)),
                     fmt::arg("claim", m.claim), fmt::arg("cache", m.cache), fmt::arg("resources", m.resources),
                     fmt::arg("grace", m.grace_s + 30));
}

std::string worker_resources(const JobOptions& options, int64_t gpus) {
  std::string lines;
  if (gpus > 0) lines += fmt::format("                nvidia.com/gpu: {}\n", gpus);
  for (const std::string& word : options.resources) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      fail<UsageError>("--resource {}: a resource is written name=amount, like vpc.amazonaws.com/efa=4", word);
    lines += fmt::format("                {}: {}\n", yaml_text(word.substr(0, equals)), yaml_text(word.substr(equals + 1)));
  }
  return lines.empty() ? "" : "            resources:\n              limits:\n" + lines;
}

}  // namespace

std::string k8s_job(const Config& config, const JobOptions& options) {
  if (options.image.empty()) fail<UsageError>("--print k8s needs --image: a container image with hlat, Open MPI and sshd");
  constexpr int64_t kLauncherRestarts = 20;
  Manifest m;
  m.name = job_name(config, options);
  m.image = options.image;
  m.claim = options.volume.empty() ? m.name + "-shared" : options.volume;
  m.shape = job_shape(config, options);
  m.grace_s = end_s(config);
  m.run = "/shared/runs/" + m.name;
  m.storage = options.storage;
  m.storage_class = options.storage_class;
  m.cache = options.local_path.empty() ? "emptyDir: {}"
                                       : fmt::format("hostPath: {{path: {}, type: DirectoryOrCreate}}", yaml_text(options.local_path));
  m.resources = worker_resources(options, m.shape.gpus);
  std::string text = fmt::format(
      "# Made by hlat launch --print k8s; kubectl apply -f FILE. Paths of data in the config must be those in the pods: /shared/...\n");
  text += config_map(m, to_yaml(config));
  if (options.volume.empty()) text += volume_claim(m);
  return text + mpi_job_head(m, kLauncherRestarts) + launcher(m, options) + worker(m);
}

}  // namespace hlat
