// What the program's exit code means.
#pragma once

namespace hlat {

enum ExitCode { kOk = 0, kFailed = 1, kUsage = 2, kBug = 3 };

}  // namespace hlat
