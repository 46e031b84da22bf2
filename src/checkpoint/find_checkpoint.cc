#include "checkpoint/find_checkpoint.h"

#include <algorithm>

#include "checkpoint/checkpoint_folder.h"

namespace hlat {
namespace fs = std::filesystem;

fs::path find_checkpoint(const std::string& given, std::optional<int64_t> step) {
  std::error_code error;
  if (!step && fs::is_regular_file(fs::path(given) / kIndexName, error)) return given;
  for (const fs::path& folder : {fs::path(given), fs::path(given) / "checkpoints"}) {
    const std::vector<int64_t> steps = checkpoint_steps(folder);
    if (!steps.empty() && (!step || std::binary_search(steps.begin(), steps.end(), *step)))
      return checkpoint_path(folder, step.value_or(steps.back()));
  }
  fail<UsageError>("{}: no checkpoint is here", given);
}

}  // namespace hlat
