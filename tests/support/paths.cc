#include "support/paths.h"

namespace hlat::test {

std::string source_path(const std::string& name) { return HLAT_SOURCE_DIR "/" + name; }
std::string nano_config() { return source_path("configs/nano.yaml"); }
std::string hlat_binary() { return HLAT_BINARY; }
std::string io_faults_library() { return HLAT_IO_FAULTS; }

}  // namespace hlat::test
