// What is said about a key or a section that does not exist: the nearest name, what another program's name is called here, or the names
// that there are. The texts follow "name: ".
#pragma once

#include <string>

namespace hlat {

std::string unknown_section(const std::string& name);
std::string unknown_key(const std::string& section, const std::string& name);

}  // namespace hlat
