// The log of a run: everything goes to a file, warnings and errors also to stderr. A logger is a value that is passed
// on; none is registered globally, so two runs in one process do not mix.
#pragma once

#include <spdlog/logger.h>

#include <filesystem>
#include <memory>

namespace hlat {

using Log = std::shared_ptr<spdlog::logger>;

Log make_file_log(const std::filesystem::path& file);  // appends; Error if it cannot be opened

}  // namespace hlat
