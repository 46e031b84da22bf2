// Libraries that are loaded when they are first needed, so that the program starts on a machine without them.
#pragma once

#include <string>

namespace hlat {

// Looks where the loader looks, then in `folder`. Null when there is none: `why` says so. It stays loaded until the process ends.
void* open_library(const char* name, const char* folder, std::string& why);

// The name of the toolkit's library for a CUDA of this major version: "libcublasLt.so.12".
std::string cuda_library_name(const std::string& library, int cuda_major);

}  // namespace hlat
