// hlat plan --machine: times, searches and costs on a machine model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/config_args.h"
#include "cli/plan_cost.h"

namespace hlat {

struct MachineArgs {
  std::string machine;  // name or file
  bool search = false;
  std::vector<std::string> precisions;  // that a search may choose among
  std::string out;                      // the winner's config
  std::string timeline;                 // a Chrome trace
  CostArgs cost;
};

void add_machine_args(CLI::App& command, MachineArgs& args);

// The config with parallel.dp known. parallel.dp = auto is one replica, unless `ranks` (0: none given) says how many ranks there are.
Config on_planned_ranks(const Config& config, int64_t ranks);

// ranks: 0: as the config says.
void plan_on_machine(const Config& config, const MachineArgs& args, int64_t ranks, bool json);

}  // namespace hlat
