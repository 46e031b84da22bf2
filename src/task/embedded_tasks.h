// The files of tasks/ in the binary. cmake/tasks.cmake writes the source.
#pragma once

#include <span>
#include <string_view>

namespace hlat {

struct EmbeddedTask {
  std::string_view name;  // of the file, without .yaml
  std::string_view text;
};

std::span<const EmbeddedTask> embedded_tasks();

}  // namespace hlat
