// What the system said when a file could not be used, as the kind of Error that tells who can mend it.
#pragma once

#include <string>

namespace hlat::reader {

// "{what}: {reason}" for an errno: a UsageError when the name or its permissions are wrong, a FaultError when a disk or the network failed.
[[noreturn]] void fail_io(int error, const std::string& what);

}  // namespace hlat::reader
