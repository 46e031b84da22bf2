#include "cli/version.h"

#ifndef HLAT_VERSION
#define HLAT_VERSION "unversioned"
#endif

namespace hlat {

const char* version() { return HLAT_VERSION; }

}  // namespace hlat
