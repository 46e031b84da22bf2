#include "cli/job_args.h"

#include "cli/commands.h"
#include "config/load.h"

namespace hlat {

void add_job_args(CLI::App& command, JobArgs& args) {
  JobOptions& o = args.options;
  CLI::Option* print = command.add_option("--print", args.print, "print a job for a cluster instead of running here: slurm | k8s")
                           ->check(CLI::IsMember({"slurm", "k8s"}))
                           ->type_name("KIND");
  const std::string group = "For --print";
  const auto option = [&](const std::string& name, auto& value, const std::string& help, const std::string& type) {
    return command.add_option(name, value, help)->needs(print)->group(group)->type_name(type);
  };
  option("--name", o.name, "name of the job; default: the last part of run.dir", "NAME");
  option("--program", o.program, "path of hlat on the nodes", "PATH");
  option("--nodes", o.nodes, "nodes; default: as many as the ranks need", "N")->check(within(1, 65536));
  option("--gpus", o.gpus, "GPUs of a node; default: 8, with device.backend cpu none", "N")->check(within(0, 1024));
  option("--ranks-per-node", o.ranks_per_node, "ranks of a node; default: one for each GPU", "N")->check(within(1, 65536));
  option("--time", o.time, "slurm: time limit, after which the job is queued again", "TIME");
  option("--partition", o.partition, "slurm: partition", "NAME");
  option("--account", o.account, "slurm: account", "NAME");
  option("--cpus", o.cpus, "slurm: cores of a rank; default: an equal share of the node's", "N")->check(within(1, 4096));
  option("--mpi", o.mpi, "slurm: --mpi of srun, one of srun --mpi=list", "KIND");
  option("--image", o.image, "k8s: container image with hlat, Open MPI and sshd", "IMAGE");
  option("--volume", o.volume, "k8s: claim of an existing shared volume; default: one is made", "CLAIM");
  option("--storage", o.storage, "k8s: size of the claim that is made", "SIZE");
  option("--storage-class", o.storage_class, "k8s: its storage class", "NAME");
  option("--local-path", o.local_path, "k8s: folder of a node for the cache; default: it ends with the pod", "PATH");
  option("--resource", o.resources, "k8s: another resource of a worker, name=amount; may be given several times", "R")->take_all();
}

std::string job_text(const JobArgs& args, const ConfigArgs& config) {
  JobOptions options = args.options;
  options.config_file = config.path;
  options.overrides = config.overrides;
  return render_job(args.print, load_config(config.path, config.overrides).config, options);
}

}  // namespace hlat
