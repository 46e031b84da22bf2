// The version of this program.
#pragma once

namespace hlat {

const char* version();

}  // namespace hlat
