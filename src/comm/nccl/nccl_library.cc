#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include "base/shared_library.h"

namespace hlat {
namespace {

struct Loaded {
  Nccl table;
  std::string why;  // it is not there
};

Loaded load() {
  Loaded l;
  void* library = open_library("libnccl.so.2", HLAT_CUDA_LIBRARIES, l.why);
  if (library == nullptr) return l;
#define HLAT_NCCL_FIND(name)                                                             \
  l.table.name = reinterpret_cast<decltype(l.table.name)>(dlsym(library, "nccl" #name)); \
  if (l.table.name == nullptr) l.why = "libnccl has no nccl" #name;
  HLAT_NCCL_FUNCTIONS(HLAT_NCCL_FIND)
#undef HLAT_NCCL_FIND
  return l;
}

}  // namespace

const Nccl* Nccl::find(std::string& why) {
  static const Loaded loaded = load();
  why = loaded.why;
  return why.empty() ? &loaded.table : nullptr;
}

const Nccl& Nccl::get() {
  std::string why;
  const Nccl* table = find(why);
  if (table == nullptr) fail<UsageError>("no NCCL: {}", why);
  return *table;
}

}  // namespace hlat
