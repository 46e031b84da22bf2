// This machine: its name, its clock and the user's cache folder.
#pragma once

#include <string>

namespace hlat {

std::string host_name();  // "localhost" when it has none
std::string boot_id();    // tells machines of one name apart; empty where the system has none
double now_s();           // seconds on a clock that is never set back

// The user's cache folder of this program: what it keeps there can be lost and is computed again.
// $XDG_CACHE_HOME/hlat, else ~/.cache/hlat; empty where neither is known. The XDG specification has relative paths ignored.
std::string user_cache_dir();

}  // namespace hlat
