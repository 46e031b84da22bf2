// Libraries of the CUDA toolkit that are loaded when they are first needed, so that the program starts on a machine without them.
#pragma once

#include <string>

namespace hlat {

// Looks where the loader looks, then in the folder of the toolkit hlat was built with. Null when there is none: `why` says so.
// The library stays loaded until the process ends.
void* open_library(const char* name, std::string& why);

}  // namespace hlat
