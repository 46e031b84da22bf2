// "Did you mean" for a path: the file that a path which does not lead to one may have meant.
#pragma once

#include <string>

namespace hlat {

// To follow "cannot be read: ...": "; did you mean configs/nano.yaml?", the files of a folder that was given as a file, or which folder of
// the path there is not. Empty when there is nothing to say.
std::string file_hint(const std::string& path);

}  // namespace hlat
