// Where something can be written before its own folder is made.
#pragma once

#include <filesystem>

namespace hlat {

// `path`, or the nearest folder above it that exists.
std::filesystem::path existing_folder(const std::filesystem::path& path);

}  // namespace hlat
