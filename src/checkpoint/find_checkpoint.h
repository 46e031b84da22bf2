// From what a user gives to a checkpoint: a checkpoint's own folder (.../step_N), a folder that has such, or a run folder, which has them
// in checkpoints, where its config says (checkpoint.dir), and weights alone in weights. What is none of these is told in words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

inline constexpr std::string_view kCheckpointsName = "checkpoints", kWeightsName = "weights";  // in a run folder

// The checkpoint itself, or the latest one, or that of `step`, in the folder that was given. UsageError says what was looked for and what
// there is instead. The index is looked for, not read.
std::filesystem::path find_checkpoint(const std::string& given, std::optional<int64_t> step = {});

// The folders with checkpoints or leftovers that a folder means, in the order in which checkpoints are looked for; at least one, or
// UsageError as above.
std::vector<std::filesystem::path> checkpoint_folders(const std::string& given);

// The run folder that a folder of checkpoints belongs to: the one around it, or that of its latest checkpoint's config. Empty: not known.
std::filesystem::path run_folder_of(const std::filesystem::path& checkpoints);

}  // namespace hlat
