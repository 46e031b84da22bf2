// From what a user gives to a checkpoint: a checkpoint's own folder (.../step_N), or a folder that has such.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace hlat {

// The checkpoint itself, or the latest one, or that of `step`, in the folder that was given. UsageError where there is none.
std::filesystem::path find_checkpoint(const std::string& given, std::optional<int64_t> step = {});

}  // namespace hlat
