#include "supervise/slurm_job.h"

#include "base/error.h"

namespace hlat {
namespace {

std::string sbatch_lines(const Config& config, const JobOptions& options, const JobShape& shape) {
  std::string text = "#!/bin/bash\n";
  const auto set = [&](const std::string& words) { text += "#SBATCH --" + words + "\n"; };
  set("job-name=" + job_name(config, options));
  set(fmt::format("nodes={}", shape.nodes));
  set(fmt::format("ntasks-per-node={}", shape.ranks_per_node));
  if (shape.gpus > 0) set(fmt::format("gpus-per-node={}", shape.gpus));
  if (options.cpus > 0) set(fmt::format("cpus-per-task={}", options.cpus));
  set("exclusive");
  set("mem=0");
  set("time=" + options.time);
  if (!options.partition.empty()) set("partition=" + options.partition);
  if (!options.account.empty()) set("account=" + options.account);
  set("requeue");
  set("no-kill");  // the launcher goes on without a node that is lost
  set("open-mode=append");
  set("output=%x.log");
  set(fmt::format("signal=B:USR1@{}", end_s(config)));
  return text;
}

std::string variables(const Config& config, const JobOptions& options, const JobShape& shape) {
  std::string text = fmt::format("hlat=${{HLAT:-{}}}\nwords=(--config {}", shell_word(options.program), shell_word(options.config_file));
  for (const std::string& word : options.overrides) text += " " + shell_word(word);
  text += fmt::format(")\nrun={}\nranks_per_node={}\n", shell_word(config.run.dir), shape.ranks_per_node);
  text += "exclude=$run/excluded_nodes # one name a line; strike out those that are repaired\n";
  text += fmt::format("export SLURM_MPI_TYPE={} # how ranks that srun starts meet: srun --mpi=list\n", shell_word(options.mpi));
  text += "unset OMP_NUM_THREADS\n";
  if (options.cpus > 0) return text + "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # the cores of a rank\n";
  return text + "export SLURM_CPU_BIND=none # hlat shares the cores of a node among its ranks\n";
}

// What turns the config into one of a single node: replicas only, and a batch that they share.
std::string one_node(const Config& config, const JobShape& shape) {
  std::string words =
      fmt::format("parallel.tp=1 parallel.pp=1 parallel.dp=auto train.global_batch={} train.micro_batch=1", shape.ranks_per_node);
  if (config.parallel.sequence) words += " parallel.sequence=false";
  if (config.parallel.chunks > 1) words += " parallel.chunks=1";
  if (!config.parallel.cuts.empty()) words += " 'parallel.cuts=[]'";
  if (config.data.validate_rows > 0) words += " data.validate_rows=0";
  return fmt::format("one_node=({})\n", words);
}

constexpr const char* kSlurmChecks = R"sh(
# Each node alone, with all its ranks. A node that fails is left out from now on: the job ends, and is submitted again without it.
mkdir -p "$run/checks"
touch "$exclude"
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
declare -A checks
for node in $nodes; do
  srun --overlap --nodes=1 --nodelist="$node" --ntasks="$ranks_per_node" --job-name=check \
    --output="$run/checks/$node.json" --error="$run/checks/$node.err" "$hlat" check "${words[@]}" "${one_node[@]}" --short --json &
  checks[$node]=$!
done
bad=
for node in $nodes; do
  wait "${checks[$node]}"
  code=$?
  [ "$code" -eq 0 ] && continue
  echo "hlat check ended with code $code on $node: $(tail -n 1 "$run/checks/$node.err")" >&2
  case $code in 2 | 3) exit "$code" ;; esac # not the node's fault
  echo "$node" >>"$exclude"
  bad=yes
done
if [ -n "$bad" ]; then
  sort -u -o "$exclude" "$exclude"
  sbatch --dependency="afterany:$SLURM_JOB_ID" --exclude="$(paste -sd, "$exclude")" "$0"
  exit 4
fi
)sh";

constexpr const char* kSlurmLaunch = R"sh(
# USR1 comes before the time limit and is handed on: the run saves and ends with code 6, and the job is queued again. TERM, of scancel or
# preemption, reaches the ranks too, and Slurm has decided what becomes of the job.
requeue=yes
trap 'kill -USR1 "$launch"' USR1
trap 'requeue=' TERM
"$hlat" launch "${words[@]}" &
)sh";

constexpr const char* kSlurmEnd = R"sh(launch=$!
code=-1
while [ "$code" -lt 0 ] || kill -0 "$launch" 2>/dev/null; do # a signal ends a wait early
  wait "$launch"
  code=$?
done
if [ "$code" -eq 6 ] && [ -n "$requeue" ]; then
  echo "saved: job $SLURM_JOB_ID is queued again" >&2
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)sh";

}  // namespace

std::string slurm_job(const Config& config, const JobOptions& options) {
  if (options.config_file.empty()) fail<UsageError>("--print slurm needs --config: the job reads it where it runs");
  const JobShape shape = job_shape(config, options);
  std::string text = sbatch_lines(config, options, shape);
  text += "# Made by hlat launch --print slurm. Submit it with sbatch, in the folder that its paths start from.\n\nset -u\n";
  text += variables(config, options, shape) + one_node(config, shape);
  text += kSlurmChecks;
  text += kSlurmLaunch;
  return text + kSlurmEnd;
}

}  // namespace hlat
