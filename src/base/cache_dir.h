// The user's cache folder of this program: what it keeps there can be lost and is made again.
#pragma once

#include <string>

namespace hlat {

// $XDG_CACHE_HOME/hlat, else ~/.cache/hlat; empty where neither is known. The XDG specification has relative paths ignored.
std::string user_cache_dir();

}  // namespace hlat
