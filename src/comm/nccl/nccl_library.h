// NCCL's functions, found at run time: libnccl is 200 MB, and the program must start without it. The members have the names of the
// functions less their prefix nccl.
#pragma once

#include <nccl.h>

#include <string>

#include "base/error.h"

namespace hlat {

struct Nccl {
#define HLAT_NCCL_FUNCTIONS(X) \
  X(GetVersion)                \
  X(GetUniqueId)               \
  X(GetErrorString)            \
  X(CommInitRank)              \
  X(CommDestroy)               \
  X(CommAbort)                 \
  X(CommGetAsyncError)         \
  X(AllReduce)                 \
  X(AllGather)                 \
  X(ReduceScatter)             \
  X(Reduce)                    \
  X(Broadcast)                 \
  X(Send)                      \
  X(Recv)                      \
  X(GroupStart)                \
  X(GroupEnd)
// A declared name cannot stand in parentheses: NOLINTNEXTLINE(bugprone-macro-parentheses)
#define HLAT_NCCL_MEMBER(name) decltype(&nccl##name) name = nullptr;
  HLAT_NCCL_FUNCTIONS(HLAT_NCCL_MEMBER)
#undef HLAT_NCCL_MEMBER

  // Loads the library at the first call. Null when it is not there: `why` says so.
  static const Nccl* find(std::string& why);
  static const Nccl& get();  // Error when it is not there
};

inline void nccl_check(ncclResult_t status, const char* call, const char* file, int line) {
  if (status != ncclSuccess) fail<FaultError>("NCCL: {} in {}, {}:{}", Nccl::get().GetErrorString(status), call, file, line);
}

}  // namespace hlat

#define HLAT_NCCL(call) ::hlat::nccl_check((call), #call, __FILE__, __LINE__)
