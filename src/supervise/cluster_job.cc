#include "supervise/cluster_job.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "supervise/k8s_job.h"
#include "supervise/slurm_job.h"

namespace hlat {

JobShape job_shape(const Config& config, const JobOptions& options) {
  const ParallelConfig& p = config.parallel;
  const int64_t group = p.tp * p.pp, spares = config.launch.spares;
  const int64_t ranks = config.launch.ranks > 0 ? config.launch.ranks : group * p.dp;  // 0: as many as the nodes take
  JobShape shape;
  shape.gpus = options.gpus >= 0 ? options.gpus : config.device.backend == "cpu" ? 0 : 8;
  shape.ranks_per_node = options.ranks_per_node > 0 ? options.ranks_per_node : shape.gpus;
  const int64_t needed = ranks > 0 ? ranks : group;
  if (shape.ranks_per_node == 0) shape.ranks_per_node = options.nodes > 0 ? (needed + options.nodes - 1) / options.nodes : needed;
  const int64_t fewest = (needed + shape.ranks_per_node - 1) / shape.ranks_per_node;
  shape.nodes = options.nodes > 0 ? options.nodes : fewest + spares;
  if (shape.nodes < fewest + spares)
    fail<UsageError>("{} ranks need {} nodes of {}{}, but the job has {}: give more with --nodes or --ranks-per-node", needed, fewest,
                     shape.ranks_per_node, spares > 0 ? fmt::format(" and {} spare{}", spares, spares == 1 ? "" : "s") : "", shape.nodes);
  return shape;
}

std::string job_name(const Config& config, const JobOptions& options) {
  const std::filesystem::path run = std::filesystem::path(config.run.dir).lexically_normal();
  const std::string given =
      !options.name.empty() ? options.name : (run.has_filename() ? run.filename() : run.parent_path().filename()).string();
  std::string name;
  for (const char c : given) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0)
      name += static_cast<char>(std::tolower(letter));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  name.resize(std::min<size_t>(name.size(), 40));  // names of pods are made of it, and have 63 letters at most
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name.front())) == 0) name = "hlat" + (name.empty() ? "" : "-" + name);
  return name;
}

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

int64_t end_s(const Config& config) { return config.checkpoint.grace_s + 60; }

std::string render_job(const std::string& kind, const Config& config, const JobOptions& options) {
  if (kind == "slurm") return slurm_job(config, options);
  if (kind == "k8s") return k8s_job(config, options);
  fail<UsageError>("--print {}: jobs are made for slurm and k8s", kind);
}

}  // namespace hlat
