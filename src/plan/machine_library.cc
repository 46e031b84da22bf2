#include "plan/machine_library.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "config/nearest.h"
#include "plan/machine_file.h"

namespace hlat {

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const EmbeddedMachine& m : embedded_machines()) names.emplace_back(m.name);
  std::sort(names.begin(), names.end());
  return names;
}

Machine find_machine(const std::string& given) {
  if (given.find('/') != std::string::npos || given.ends_with(".yaml") || given.ends_with(".yml")) return read_machine(given);
  const std::string file = fmt::format("machines/{}.yaml", given);
  std::error_code failed;
  if (std::filesystem::is_regular_file(file, failed)) return read_machine(file);
  for (const EmbeddedMachine& m : embedded_machines())
    if (m.name == given) return parse_machine(std::string(m.text), file);
  const std::vector<std::string> names = machine_names();
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view near = nearest(given, views);
  fail<UsageError>("machine {}: there is none of this name{}; there are {}, and any file that is given as a path", given,
                   near.empty() ? "" : fmt::format("; did you mean {}?", near), fmt::join(names, ", "));
}

}  // namespace hlat
