// Where things lie. Only paths.cc is compiled with the paths of the tree: all other objects are the same in every clone, which a compiler
// cache then has.
#pragma once

#include <string>

namespace hlat::test {

std::string source_path(const std::string& name);  // of a file of the tree
std::string nano_config();
std::string hlat_binary();
std::string io_faults_library();  // tests/preload/io_faults.cc

}  // namespace hlat::test
