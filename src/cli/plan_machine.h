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

// ranks: 0: as the config says.
void plan_on_machine(const Config& config, const MachineArgs& args, int64_t ranks, bool json);

}  // namespace hlat
