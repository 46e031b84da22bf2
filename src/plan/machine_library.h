// The machines there are: those built into the binary (machines/*.yaml) and files of the user.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/machine.h"

namespace hlat {

struct EmbeddedMachine {
  std::string_view name;  // of the file, without .yaml
  std::string_view text;
};
std::span<const EmbeddedMachine> embedded_machines();  // cmake/machines.cmake writes the source

std::vector<std::string> machine_names();  // of the built-in ones, in order

// A path (with a slash or ending in .yaml or .yml), else NAME.yaml in the folder machines/ of the working folder, else a built-in one.
// UsageError with the names there are and the nearest.
Machine find_machine(const std::string& name_or_path);

}  // namespace hlat
