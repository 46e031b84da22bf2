// The hosts that ranks may run on, with a slot for each rank they may take. They come from launch.hosts, else from the job of a Slurm
// cluster, else from the hostfile that the environment names to Open MPI (the MPI operator of Kubernetes sets it), else it is this host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "config/config.h"

namespace hlat {

struct Host {
  std::string name;
  int slots = 0;
  bool operator==(const Host&) const = default;
};

// The ranks that this host takes when nothing says more: its GPUs where the ranks use them, else what the layout needs.
// `gpus`: those device.backend would use; 0 for the CPU.
int slots_of_this_host(const Config& config, int gpus);

// In the order in which they are used, each name once. UsageError names the file and line, or the variable, at fault.
std::vector<Host> find_hosts(const LaunchConfig& launch, const Environment& env, int slots_here);

// "node1:8,node[2-4]:8". `origin` begins the messages.
std::vector<Host> parse_host_list(std::string_view text, const std::string& origin);

// Lines "node1 slots=8", Open MPI's, or "node1:8"; "node1" alone is one slot, and a name that comes again adds its slots. A # begins a
// comment.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& file);

// Slurm's short form of names: "node[01-03,07],login" is node01 node02 node03 node07 login.
std::vector<std::string> expand_node_list(std::string_view text, const std::string& origin);

// Slurm's short form of counts, one for each of the nodes: "8(x2),4" is 8 8 4.
std::vector<int> expand_counts(std::string_view text, const std::string& origin);

}  // namespace hlat
