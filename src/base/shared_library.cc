#include "base/shared_library.h"

#include <dlfcn.h>

namespace hlat {

void* open_library(const char* name, const char* folder, std::string& why) {
  if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* error = dlerror();
  why = error == nullptr ? std::string(name) + " cannot be loaded" : error;
  const std::string path = std::string(folder) + "/" + name;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) why.clear();
  return handle;
}

std::string cuda_library_name(const std::string& library, int cuda_major) { return library + ".so." + std::to_string(cuda_major); }

}  // namespace hlat
